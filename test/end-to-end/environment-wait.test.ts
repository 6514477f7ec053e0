import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  nextOf,
  pagesFrom,
  send,
  type Answer,
  type InboxJson,
  type MessageJson,
  type ProblemJson,
  type Target,
} from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

interface NoMatch {
  examined: number
  nearest: { id: string; inbox_id: string; subject: string | null; mismatches: string[] }[]
  cursor: string
}

type WaitAnswer = Answer<MessageJson & ProblemJson & NoMatch>

const cursorOf = ({ headers }: Pick<Answer<unknown>, 'headers'>) => headers.get('mayfly-cursor') ?? ''

describe('a wait for the mail of an environment', () => {
  let mayfly: Mayfly
  let admin: Target
  /** A key of an environment of its own, for each test. */
  let own: Target
  let keyId: string

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly, { plan: 'enterprise' })).key)
    const key = await issueKey(admin)
    own = withKey(mayfly, key)
    keyId = key.id
  })

  const wait = (query: Record<string, string> = {}, target = own): Promise<WaitAnswer> =>
    call(target, 'GET', `/v1/messages/wait?${new URLSearchParams(query).toString()}`)
  const subjectOf = ({ status, body }: WaitAnswer) => (status === 200 ? body.subject : body.code)
  const untilOpen = (count: number) =>
    until('the waits to be open', async () => {
      const { body } = await call<string>(mayfly, 'GET', '/metrics')
      return Number(/^mayfly_open_waits (\d+)$/m.exec(body)?.[1] ?? NaN) === count
    })

  it.each([
    { query: {}, subject: 'a1', rest: ['b2', 'a3', 'b4'] },
    { query: { timeout: '0', order: 'desc' }, subject: 'b4', rest: [] },
    { query: { subject: 'B' }, subject: 'b2', rest: ['a3', 'b4'] },
    { query: { order: 'desc', subject: 'A' }, subject: 'a3', rest: ['b4'] },
  ])('returns $subject of those that are present for $query, and a cursor after it', async (each) => {
    const [one, two] = [await createInbox(own), await createInbox(own)]
    for (const [inbox, subject] of [[one, 'a1'] as const, [two, 'b2'] as const, [two, 'a3'] as const]) {
      await send(own, inbox.address, mail(subject))
    }
    await send(own, one.address, mail('b4'))
    const all = [...(await messagesOf(own, one.id, 2)), ...(await messagesOf(own, two.id, 2))]
    const answer = await wait(each.query)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual(all.find(({ subject }) => subject === each.subject))
    const after = await pagesFrom<MessageJson>(own, `/v1/messages?cursor=${cursorOf(answer)}`)
    expect(after.flatMap(({ body }) => body.map(({ subject }) => subject))).toEqual(each.rest)
  })

  it('ends when a matching mail arrives in any inbox, for every waiting client', async () => {
    const [one, two] = [await createInbox(own), await createInbox(own)]
    const waiting = Array.from({ length: 5 }, () => wait({ subject: 'welcome' }))
    await untilOpen(5)
    await send(own, one.address, mail('Something else'))
    await send(own, two.address, mail('Welcome aboard'))
    const answers = await Promise.all(waiting)
    expect(answers.map(subjectOf)).toEqual(Array(5).fill('Welcome aboard'))
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    await untilOpen(0)
  })

  it('ends for mail of an inbox that is created during the wait', async () => {
    const waiting = wait()
    await untilOpen(1)
    await inboxWith(own, mail('first'))
    expect(subjectOf(await waiting)).toBe('first')
  })

  it('returns every message of concurrent senders once, from cursor to cursor', async () => {
    const [INBOXES, EACH] = [6, 6]
    const inboxes = await Promise.all(Array.from({ length: INBOXES }, () => createInbox(own)))
    const sending = Promise.all(
      inboxes.map(async ({ address }) => {
        for (let n = 0; n < EACH; n += 1) await send(own, address, mail(`${n}`))
      }),
    )
    const seen: string[] = []
    let cursor: string | null = null
    while (seen.length < INBOXES * EACH) {
      const answer: WaitAnswer = await wait({ timeout: '20', ...(cursor === null ? {} : { cursor }) })
      expect(answer.status).toBe(200)
      seen.push(answer.body.id)
      cursor = cursorOf(answer)
    }
    await sending
    expect(new Set(seen).size).toBe(INBOXES * EACH)
    expect(subjectOf(await wait({ timeout: '0', cursor: cursor ?? '' }))).toBe('no-matching-message')
  })

  it('explains at its timeout why the nearest messages did not match', async () => {
    const inbox = await inboxWith(own, mail('Your invoice'))
    const answer = await wait({ subject: 'welcome', has_code: 'true', timeout: '0' })
    expectProblem(answer, { status: 404, code: 'no-matching-message' })
    expect(answer.body).toMatchObject({
      examined: 1,
      nearest: [
        {
          inbox_id: inbox.id,
          subject: 'Your invoice',
          mismatches: ['subject does not contain "welcome"', 'there is no code'],
        },
      ],
      cursor: cursorOf(answer),
    })
    await send(own, inbox.address, mail('Welcome, 493201 is your code'))
    const next = await wait({ subject: 'welcome', has_code: 'true', cursor: answer.body.cursor })
    expect(subjectOf(next)).toBe('Welcome, 493201 is your code')
    const none = await wait({ timeout: '0', cursor: cursorOf(next) })
    expect(none.body).toMatchObject({ examined: 0, nearest: [] })
    expect(none.body.detail).toBe('No mail has arrived in this environment after `cursor`.')
  })

  it('is for inboxes with the wanted labels, without protected ones and other environments', async () => {
    const labels = { run: '42' }
    const labelled = await createInbox(own, { labels })
    const secret = await createInbox(own, { labels, password_protected: true })
    const foreign = withKey(mayfly, await issueKey(admin, { environment: 'production' }))
    const waiting = wait({ label: 'run:42' })
    await untilOpen(1)
    await send(own, secret.address, mail('secret'))
    await inboxWith(own, mail('without a label'))
    const other = await createInbox(foreign, { labels })
    await send(foreign, other.address, mail('of another environment'))
    await send(own, labelled.address, mail('labelled'))
    expect(subjectOf(await waiting)).toBe('labelled')
    const none = await wait({ label: 'run:43', timeout: '0' })
    expect(none.body.detail).toBe('No mail has arrived in inboxes of this environment with these labels.')
  })

  it('is refused if its key is revoked meanwhile', async () => {
    const inbox = await createInbox(own)
    const waiting = wait()
    await untilOpen(1)
    expect((await call(admin, 'DELETE', `/v1/keys/${keyId}`)).status).toBe(200)
    await send(mayfly, inbox.address, mail('private'))
    expectProblem(await waiting, { status: 401, code: 'revoked-api-key' })
  })

  it.each(['timeout=56', 'order=newest', 'limit=1', 'cursor=x', 'label=x', 'nope=1'])(
    'refuses ?%s',
    async (query) => {
      const answer = await call(own, 'GET', `/v1/messages/wait?${query}`)
      const at = [{ parameter: query.split('=')[0] ?? '' }]
      expectProblem(answer, { status: 400, code: 'invalid-request', at })
    },
  )

  describe('with more messages than one scan examines', () => {
    const [INBOXES, ROUNDS] = [60, 20]
    let inboxes: InboxJson[]

    beforeEach(async () => {
      inboxes = await Promise.all(
        Array.from({ length: INBOXES }, (_, n) => createInbox(own, { labels: { half: `${n % 2}` } })),
      )
      const addresses = inboxes.map(({ address }) => address)
      for (let round = 0; round < ROUNDS; round += 1) await send(own, addresses, mail(`round ${round}`))
      for (const { id } of inboxes) await messagesOf(own, id, ROUNDS)
    })

    it('finds a match behind them at once, and a list has it on an empty page’s next page', async () => {
      const [first] = inboxes
      await send(own, first?.address ?? '', mail('last'))
      expect(subjectOf(await wait({ subject: 'last', timeout: '20' }))).toBe('last')
      const oldest = { subject: 'round 0', order: 'desc' }
      const ended = await wait({ ...oldest, timeout: '0' })
      expect(ended.body).toMatchObject({ code: 'no-matching-message', examined: 1_000 })
      expect(subjectOf(await wait({ ...oldest, cursor: cursorOf(ended), timeout: '0' }))).toBe('round 0')
      expect(subjectOf(await wait(oldest))).toBe('round 0')
      for (const { order, subject } of [
        { order: 'asc', subject: 'last' },
        { order: 'desc', subject: 'round 0' },
      ]) {
        const pages = await pagesFrom<MessageJson>(
          own,
          `/v1/messages?order=${order}&subject=${subject}&limit=100`,
        )
        const found = pages.flatMap(({ body }) => body.map((message) => message.subject))
        expect(new Set(found)).toEqual(new Set([subject]))
        expect(found).toHaveLength(subject === 'last' ? 1 : INBOXES)
        expect(pages.map(({ body }) => body.length)[0]).toBe(0)
      }
      const half = await pagesFrom<MessageJson>(own, '/v1/messages?label=half:1&limit=100')
      expect(half.flatMap(({ body }) => body)).toHaveLength((INBOXES * ROUNDS) / 2)
      expect(nextOf(half.at(-1) ?? { headers: new Headers() })).toBeNull()
    })
  })
})
