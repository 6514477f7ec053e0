import {
  call,
  createInbox,
  mail,
  messagesOf,
  send,
  type Answer,
  type InboxJson,
  type ProblemJson,
} from '#test/harness/client.js'
import { expectProblem } from '#test/harness/problem.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

interface CountJson {
  count: number
  inboxes: number
  cursor: string
  expected: number
  too_few: { inbox_id: string; count: number }[]
  too_many: { inbox_id: string; count: number }[]
}

type CountAnswer = Answer<CountJson & ProblemJson>

describe('a wait for a number of messages', () => {
  let mayfly: SharedMayfly
  let run = 0
  let label: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })
  function useNextLabel(): void {
    run += 1
    label = `run:${run}`
  }
  beforeEach(useNextLabel)

  const make = (facts: object = {}) => createInbox(mayfly, { labels: { run: `${run}` }, ...facts })
  const wait = (query: Record<string, string>): Promise<CountAnswer> =>
    call(mayfly, 'GET', `/v1/messages/wait?${new URLSearchParams({ label, ...query }).toString()}`)
  const sendTo = (...inboxes: InboxJson[]) =>
    send(
      mayfly,
      inboxes.map(({ address }) => address),
      mail('hello'),
    )

  async function expectCount(query: Record<string, string>, count: number, inboxes: number): Promise<void> {
    const answer = await wait(query)
    expect(answer).toMatchObject({ status: 200, body: { count, inboxes } })
    expect(answer.headers.get('mayfly-cursor')).toBe(answer.body.cursor)
  }

  it('ends with the last message, in one request for a hundred inboxes', async () => {
    const { body: inboxes } = await call<InboxJson[]>(mayfly, 'POST', '/v1/inboxes/bulk', {
      body: { count: 100, labels: { run: `${run}` } },
    })
    const waiting = Promise.all([
      expectCount({ count: '200', timeout: '50' }, 200, 100),
      expectCount({ count: '200', per_inbox: '2', mode: 'exactly', timeout: '50' }, 200, 100),
    ])
    for (let round = 0; round < 2; round += 1) {
      for (let from = 0; from < 100; from += 25) await sendTo(...inboxes.slice(from, from + 25))
    }
    await waiting
    // They are all there: it returns at once.
    await expectCount({ count: '150', timeout: '0' }, 200, 100)
  })

  it('waits until each inbox has its messages', async () => {
    const [one, two] = [await make(), await make()]
    const waiting = expectCount({ count: '2', per_inbox: '1', timeout: '50' }, 3, 2)
    await sendTo(one)
    await sendTo(one)
    await messagesOf(mayfly, one.id, 2)
    await sendTo(two)
    await waiting
  })

  it('requires at least as many of each inbox, also with an exact number in all', async () => {
    const [one, two] = [await make(), await make()]
    await sendTo(one, two)
    await sendTo(one)
    await expectCount({ count: '3', per_inbox: '1', mode: 'exactly', timeout: '20' }, 3, 2)
  })

  it('explains after its timeout which inboxes have too few or too many', async () => {
    const [one, two, three] = [await make(), await make(), await make()]
    await sendTo(one, two)
    await sendTo(one)
    await messagesOf(mayfly, one.id, 2)
    await messagesOf(mayfly, two.id, 1)
    const outliers = {
      too_few: [{ inbox_id: three.id, count: 0 }],
      too_many: [{ inbox_id: one.id, count: 2 }],
    }
    for (const query of [
      { count: '3', per_inbox: '1' },
      { count: '3', per_inbox: '1', mode: 'exactly' },
    ]) {
      const answer = await wait({ ...query, timeout: '1' })
      expectProblem(answer, { status: 404, code: 'no-matching-message' })
      expect(answer.body).toMatchObject({ count: 3, expected: 3, ...outliers })
      expect(answer.headers.get('mayfly-cursor')).toBe(answer.body.cursor)
      const after = await call(mayfly, 'GET', `/v1/messages?cursor=${answer.body.cursor}`)
      expect(after.body).toEqual([])
    }
    // Without `per_inbox`, an even share is expected of each: one or two.
    const more = await wait({ count: '4', timeout: '0' })
    expect(more.body).toMatchObject({ count: 3, expected: 4, too_few: outliers.too_few, too_many: [] })
    const none = await wait({ count: '1', label: 'run:none', timeout: '0' })
    expect(none.body).toMatchObject({ count: 0, too_few: [], too_many: [] })
    expect(none.body.detail).toContain('Inboxes: 0.')
  })

  it('requires that an exact number stays the same', async () => {
    // On a busy machine, the mails may become visible too late.
    const { inbox, answer } = await until('a number that changes', async () => {
      useNextLabel()
      const changing = await make()
      await sendTo(changing)
      const waiting = wait({ count: '1', mode: 'exactly', timeout: '2' })
      await sendTo(changing)
      const waited = await waiting
      return waited.body.count !== 2 ? null : { inbox: changing, answer: waited }
    })
    expectProblem(answer, { status: 404, code: 'no-matching-message' })
    expect(answer.body).toMatchObject({ count: 2, expected: 1, too_many: [{ inbox_id: inbox.id, count: 2 }] })
    await expectCount({ count: '2', mode: 'exactly', timeout: '0' }, 2, 1)
    await expectCount({ count: '0', mode: 'exactly', label: 'run:none', timeout: '0' }, 0, 0)
  })

  it('counts deleted messages and ended inboxes, and no protected inbox', async () => {
    const [one, two] = [await make(), await make()]
    const secret = await make({ password_protected: true })
    await sendTo(one, two, secret)
    const [message] = await messagesOf(mayfly, one.id, 1)
    await messagesOf(mayfly, two.id, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${one.id}/messages/${message?.id}`)
    await call(mayfly, 'DELETE', `/v1/inboxes/${two.id}`)
    await expectCount({ count: '2', per_inbox: '1', mode: 'exactly', timeout: '10' }, 2, 2)
  })

  it('counts for the labels that an inbox has now', async () => {
    const inbox = await make()
    await sendTo(inbox)
    await expectCount({ count: '1', timeout: '20' }, 1, 1)
    await call(mayfly, 'PATCH', `/v1/inboxes/${inbox.id}`, { body: { labels: { other: `${run}` } } })
    await expectCount({ count: '0', timeout: '0' }, 0, 0)
    await expectCount({ count: '1', label: `other:${run}`, timeout: '0' }, 1, 1)
  })

  it.each([
    { query: 'count=1', at: 'label' },
    { query: 'count=1&label=run:1&label=shard:2', at: 'label' },
    { query: 'count=-1&label=run:1', at: 'count' },
    { query: 'count=1.5&label=run:1', at: 'count' },
    { query: 'count=100000001&label=run:1', at: 'count' },
    { query: 'count=1&label=run:1&per_inbox=0', at: 'per_inbox' },
    { query: 'count=1&label=run:1&mode=most', at: 'mode' },
    { query: 'count=1&label=run:1&subject=x', at: 'subject' },
    { query: 'count=1&label=run:1&has_code=true', at: 'has_code' },
    { query: 'count=1&label=run:1&order=desc', at: 'order' },
    { query: 'label=run:1&mode=exactly', at: 'mode' },
    { query: 'label=run:1&per_inbox=1', at: 'per_inbox' },
  ])('refuses ?$query', async ({ query, at }) => {
    const answer = await call(mayfly, 'GET', `/v1/messages/wait?${query}`)
    expectProblem(answer, { status: 400, code: 'invalid-request', at: [{ parameter: at }] })
  })

  it('says of a number that is none what it must be', async () => {
    const { body } = await call<ProblemJson>(mayfly, 'GET', '/v1/messages/wait?count=many&label=run:1')
    expect(body.errors).toEqual([{ detail: 'count must be a whole number', parameter: 'count' }])
  })
})
