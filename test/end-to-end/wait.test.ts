import { setTimeout as pause } from 'node:timers/promises'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
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
import { httpPort, openWire } from '#test/harness/wire.js'

type WaitAnswer = Answer<MessageJson & ProblemJson & NoMatch>

/** Changes that a test makes while a wait is open. */
interface Changed {
  keyId: string
  accountId: string
}

interface NoMatch {
  examined: number
  nearest: { id: string; subject: string | null; received_at: string; mismatches: string[] }[]
  cursor: string
}

const cursorOf = ({ headers }: Pick<Answer<unknown>, 'headers'>) => headers.get('mayfly-cursor') ?? ''

describe('a wait', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  const wait = ({ id }: Pick<InboxJson, 'id'>, query: Record<string, string> = {}) =>
    call<MessageJson & ProblemJson & NoMatch>(
      mayfly,
      'GET',
      `/v1/inboxes/${id}/messages/wait?${new URLSearchParams(query).toString()}`,
    )
  const waits = () => openWaits(mayfly)
  const subjectOf = ({ status, body }: WaitAnswer) => (status === 200 ? body.subject : body.code)

  describe('for existing mail', () => {
    let inbox: InboxJson

    beforeAll(async () => {
      inbox = await inboxWith(mayfly, ...['a1', 'b2', 'a3', 'b4'].map((subject) => mail(subject)))
    })

    it.each([
      { query: {}, subject: 'a1', rest: ['b2', 'a3', 'b4'] },
      { query: { timeout: '0' }, subject: 'a1', rest: ['b2', 'a3', 'b4'] },
      { query: { order: 'desc' }, subject: 'b4', rest: [] },
      { query: { order: 'asc', subject: 'B' }, subject: 'b2', rest: ['a3', 'b4'] },
      { query: { order: 'desc', subject: 'A' }, subject: 'a3', rest: ['b4'] },
    ])('returns $subject for $query, and a cursor after it', async ({ query, subject, rest }) => {
      const answer = await wait(inbox, query)
      expect(subjectOf(answer)).toBe(subject)
      const list = await call<MessageJson[]>(
        mayfly,
        'GET',
        `/v1/inboxes/${inbox.id}/messages?cursor=${cursorOf(answer)}`,
      )
      expect(list.body.map((message) => message.subject)).toEqual(rest)
    })

    it('returns the message as in a list, without its source, and consumes nothing', async () => {
      const [first] = await messagesOf(mayfly, inbox.id, 4)
      const answers = await Promise.all([wait(inbox), wait(inbox)])
      for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 200, body: first })
    })

    it('continues from the cursor of the previous wait, to the end', async () => {
      const seen: unknown[] = []
      let cursor = ''
      for (;;) {
        const answer = await wait(inbox, { timeout: '0', ...(cursor === '' ? {} : { cursor }) })
        if (answer.status === 404) break
        seen.push(answer.body.subject)
        cursor = cursorOf(answer)
      }
      expect(seen).toEqual(['a1', 'b2', 'a3', 'b4'])
    })

    it('has links with the path of the request', async () => {
      const { body } = await call<MessageJson>(mayfly, 'GET', `/v1/emails/${inbox.id}/messages/wait`)
      expect(body.raw_url).toBe(`/v1/emails/${inbox.id}/messages/${body.id}/raw`)
    })
  })

  it('ends when a matching mail arrives, for every waiting client', async () => {
    const inbox = await createInbox(mayfly)
    const waiting = Array.from({ length: 5 }, () => wait(inbox, { subject: 'welcome' }))
    await until('the waits to be open', async () => (await waits()) === 5)
    await send(mayfly, inbox.address, mail('Something else'))
    await send(mayfly, inbox.address, mail('Welcome aboard'))
    const answers = await Promise.all(waiting)
    expect(answers.map(subjectOf)).toEqual(Array(5).fill('Welcome aboard'))
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    await until('the waits to be over', async () => (await waits()) === 0)
  })

  it('with order=desc returns the newest existing mail, or else the next one', async () => {
    const inbox = await inboxWith(mayfly, mail('code 1'), mail('code 2'))
    const newest = await wait(inbox, { order: 'desc', subject: 'code' })
    expect(subjectOf(newest)).toBe('code 2')
    const coming = wait(inbox, { order: 'desc', subject: 'code', cursor: cursorOf(newest) })
    await until('the wait to be open', async () => (await waits()) === 1)
    await send(mayfly, inbox.address, mail('code 3'))
    expect(subjectOf(await coming)).toBe('code 3')
  })

  it('with a cursor from before a resend returns only the new mail', async () => {
    const inbox = await inboxWith(mayfly, mail('code 1'))
    const before = cursorOf(await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`))
    const coming = wait(inbox, { subject: 'code', cursor: before })
    await until('the wait to be open', async () => (await waits()) === 1)
    await send(mayfly, inbox.address, mail('code 2'))
    expect(subjectOf(await coming)).toBe('code 2')
  })

  it('loses no wake-up if a mail arrives at any moment of its reads', async () => {
    const ROUNDS = 30
    const WAITS = 10
    const inboxes = await Promise.all(Array.from({ length: ROUNDS }, () => createInbox(mayfly)))
    const outcomes = await Promise.all(
      inboxes.map(async (inbox, round) => {
        const visible = send(mayfly, inbox.address, mail('racing'))
          .then(() => messagesOf(mayfly, inbox.id, 1))
          .then(() => performance.now())
        const racing = Array.from({ length: WAITS }, async (_, index) => {
          // Each wait starts a little later relative to the mail.
          for (let turns = 0; turns < index * (round % 7); turns += 1) await new Promise(setImmediate)
          const { status } = await wait(inbox, { timeout: '20' })
          return { status, answered: performance.now() }
        })
        const answers = await Promise.all(racing)
        const visibleAt = await visible
        return answers.map(({ status, answered }) => ({ status, lateMs: answered - visibleAt }))
      }),
    )
    expect(new Set(outcomes.flat().map(({ status }) => status))).toEqual(new Set([200]))
    // After a lost signal, the next periodic read would find the mail seconds later.
    expect(Math.max(...outcomes.flat().map(({ lateMs }) => lateMs))).toBeLessThan(9_500)
  })

  it('returns every message of concurrent senders once, in order, from cursor to cursor', async () => {
    const SENDERS = 6
    const EACH = 8
    const inbox = await createInbox(mayfly)
    const sending = Promise.all(
      Array.from({ length: SENDERS }, async (_, sender) => {
        for (let n = 0; n < EACH; n += 1) await send(mayfly, inbox.address, mail(`${sender}-${n}`))
      }),
    )
    const seen: string[] = []
    let cursor: string | null = null
    while (seen.length < SENDERS * EACH) {
      const answer: WaitAnswer = await wait(inbox, { timeout: '20', ...(cursor === null ? {} : { cursor }) })
      expect(answer.status).toBe(200)
      seen.push(answer.body.id)
      cursor = cursorOf(answer)
    }
    await sending
    expect(seen).toEqual((await messagesOf(mayfly, inbox.id, SENDERS * EACH)).map(({ id }) => id))
  })

  it('explains at its timeout why the nearest messages did not match', async () => {
    const subjects = ['Welcome', 'Code 1', 'News', 'Code 2', 'Bill', 'Hello', 'Offer']
    const inbox = await inboxWith(mayfly, ...subjects.map((subject) => mail(subject)))
    const started = performance.now()
    const answer = await wait(inbox, { subject: 'code', has_link: 'true', sender: 'nobody', timeout: '1' })
    expect(performance.now() - started).toBeGreaterThanOrEqual(990)
    const problem = expectProblem(answer, { status: 404, code: 'no-matching-message' })
    expect(problem.detail).toMatch(/\b7\b/)
    const { examined, nearest, cursor } = answer.body
    expect(examined).toBe(7)
    expect(nearest.map(({ subject }) => subject)).toEqual(['Code 2', 'Code 1', 'Offer', 'Hello', 'Bill'])
    const [messages] = [await messagesOf(mayfly, inbox.id, 7)]
    expect(nearest[0]).toEqual({
      id: messages[3]?.id,
      inbox_id: inbox.id,
      subject: 'Code 2',
      received_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as unknown,
      mismatches: ['sender does not contain "nobody"', 'there is no link'],
    })
    expect(nearest[2]?.mismatches).toHaveLength(3)
    // All of them have been examined, so only new mail matches after the cursor.
    expect(cursorOf(answer)).toBe(cursor)
    expect(subjectOf(await wait(inbox, { cursor, timeout: '0' }))).toBe('no-matching-message')
    await send(mayfly, inbox.address, mail('Code 3'))
    expect(subjectOf(await wait(inbox, { cursor }))).toBe('Code 3')
  })

  it('counts mail that arrived during the wait as examined', async () => {
    const inbox = await inboxWith(mayfly, mail('one'))
    const waiting = wait(inbox, { subject: 'never', timeout: '10' })
    await until('the wait to be open', async () => (await waits()) === 1)
    await send(mayfly, inbox.address, mail('two'))
    const { body } = await waiting
    expect(body.examined).toBe(2)
    expect(body.nearest.map(({ subject }) => subject)).toEqual(['two', 'one'])
  })

  it.each([{ timeout: '0' }, { timeout: '1' }])(
    'in an empty inbox ends after $timeout s',
    async ({ timeout }) => {
      const inbox = await createInbox(mayfly)
      const answer = await wait(inbox, { timeout })
      const { detail } = expectProblem(answer, { status: 404, code: 'no-matching-message' })
      expect(detail).toBe(`No mail has arrived in this inbox since it was created at ${inbox.created_at}.`)
      expect(answer.body).toMatchObject({ examined: 0, nearest: [] })
    },
  )

  it('says that faults on purpose may be the reason', async () => {
    const inbox = await createInbox(mayfly)
    const body = [{ stage: 'after_accept', action: 'drop' }]
    await call(mayfly, 'PUT', `/v1/inboxes/${inbox.id}/faults`, { body })
    const answer = await wait(inbox, { timeout: '0' })
    const { detail } = expectProblem(answer, { status: 404, code: 'no-matching-message' })
    expect(detail).toMatch(
      /The inbox has faults on purpose \(drop at after_accept\); DELETE .*\/faults removes them\.$/,
    )
  })

  it('reports at its timeout when the last mail arrived, if that mail is excluded', async () => {
    const { id } = await inboxWith(mayfly, mail('one'), mail('two'))
    const inbox = await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${id}`)
    const since = `No mail has arrived in this inbox since the last one at ${inbox.body.last_message_at ?? ''}, which`
    const behind = await wait({ id }, { timeout: '0', cursor: cursorOf(inbox) })
    expect(expectProblem(behind, { status: 404, code: 'no-matching-message' }).detail).toBe(
      `${since} is before \`cursor\` or has been deleted.`,
    )
    for (const message of await messagesOf(mayfly, id, 2))
      await call(mayfly, 'DELETE', `/v1/inboxes/${id}/messages/${message.id}`)
    const emptied = await wait({ id }, { timeout: '0' })
    expect(expectProblem(emptied, { status: 404, code: 'no-matching-message' }).detail).toBe(
      `${since} has been deleted.`,
    )
  })

  it('ends with 410 as soon as the inbox is deleted', async () => {
    const inbox = await createInbox(mayfly)
    const waiting = [wait(inbox), wait(inbox, { subject: 'x', order: 'desc' })]
    await until('the waits to be open', async () => (await waits()) === 2)
    const started = performance.now()
    await call(mayfly, 'DELETE', `/v1/inboxes/${inbox.id}`)
    for (const answer of await Promise.all(waiting)) {
      expect(expectProblem(answer, { status: 410, code: 'inbox-deleted' }).ended_at).toMatch(/Z$/)
    }
    expect(performance.now() - started).toBeLessThan(8_500)
    expectProblem(await wait(inbox), { status: 410, code: 'inbox-deleted' })
  })

  it.each([
    {
      name: 'key is revoked',
      code: 'revoked-api-key',
      status: 401,
      change: (admin: Target, { keyId }: Changed) => call(admin, 'DELETE', `/v1/keys/${keyId}`),
    },
    {
      name: 'key is given another secret',
      code: 'revoked-api-key',
      status: 401,
      change: (admin: Target, { keyId }: Changed) =>
        call(admin, 'POST', `/v1/keys/${keyId}/rotate`, { body: {} }),
    },
    {
      name: 'account loses its API access',
      code: 'plan-lacks-api-access',
      status: 403,
      change: (_: Target, { accountId }: Changed) =>
        call(mayfly, 'PATCH', `/v1/accounts/${accountId}`, { body: { plan: 'free' } }),
    },
  ])('is refused if the client’s $name meanwhile', async ({ code, status, change }) => {
    const account = await openAccount(mayfly)
    const admin = withKey(mayfly, account.key)
    const key = await issueKey(admin)
    const own = withKey(mayfly, key)
    const inbox = await inboxWith(own, mail('not this one'))
    const waiting = call(own, 'GET', `/v1/inboxes/${inbox.id}/messages/wait?subject=private`)
    await until('the wait to be open', async () => (await waits()) === 1)
    // Its first read needs no second authentication, so it has to be over.
    await pause(1_000)
    expect((await change(admin, { keyId: key.id, accountId: account.id })).status).toBeLessThan(300)
    await send(mayfly, inbox.address, mail('private'))
    expectProblem(await waiting, { status, code })
  })

  it('ends when its client disconnects', async () => {
    const inbox = await createInbox(mayfly)
    const wires = await Promise.all(Array.from({ length: 20 }, () => openWire(httpPort(mayfly))))
    for (const wire of wires) wire.write(waitRequest(mayfly, inbox.id, 55))
    await until('the waits to be open', async () => (await waits()) === wires.length)
    for (const wire of wires) wire.close()
    await until('the waits to be over', async () => (await waits()) === 0)
  })

  it('logs no warning for many waits on one connection', async () => {
    const inbox = await createInbox(mayfly)
    const wire = await openWire(httpPort(mayfly))
    wire.write(waitRequest(mayfly, inbox.id, 55).repeat(12))
    await until('the waits to be open', async () => (await waits()) === 12)
    wire.close()
    await until('the waits to be over', async () => (await waits()) === 0)
    expect(mayfly.output().stderr).not.toContain('MaxListenersExceededWarning')
  })

  it.each([
    'timeout=56',
    'timeout=-1',
    'timeout=1.5',
    'timeout=',
    'timeout=1s',
    'order=newest',
    'limit=1',
    'cursor=x',
    'has_code=1',
    'nope=1',
  ])('refuses ?%s', async (query) => {
    const inbox = await createInbox(mayfly)
    const answer = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}/messages/wait?${query}`)
    const at = [{ parameter: query.split('=')[0] ?? '' }]
    expectProblem(answer, { status: 400, code: 'invalid-request', at })
  })

  it('for an unknown inbox ends at once', async () => {
    const other = `inb_${'0'.repeat(26)}`
    for (const id of [other, 'x']) {
      expectProblem(await wait({ id }), { status: 404, code: 'not-found' })
    }
  })
})

describe('the waits of one instance', () => {
  let mayfly: Mayfly

  beforeEach(async () => {
    mayfly = await startMayfly({ isOneProcess: true, env: { MAYFLY_MAX_WAITS: '3' } })
  })
  afterEach(() => mayfly.dispose())

  const waitFor = (id: string) => call(mayfly, 'GET', `/v1/inboxes/${id}/messages/wait?timeout=55`)

  it('are limited in number, and end at once with shutting-down at a shutdown', async () => {
    const inbox = await createInbox(mayfly)
    const waiting = Array.from({ length: 3 }, () => waitFor(inbox.id))
    await until('the waits to be open', async () => (await openWaits(mayfly)) === 3)
    const refused = await waitFor(inbox.id)
    expectProblem(refused, { status: 503, code: 'too-many-waits' })
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)

    const started = performance.now()
    const ended = mayfly.end('SIGTERM')
    for (const answer of await Promise.all(waiting)) {
      expectProblem(answer, { status: 503, code: 'shutting-down' })
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    }
    expect(performance.now() - started).toBeLessThan(9_000)
    expect(await ended).toBe(0)
  })
})

function waitRequest({ apiKey }: Mayfly, id: string, timeout: number): string {
  const target = `/v1/inboxes/${id}/messages/wait?timeout=${timeout}`
  return `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${apiKey}\r\n\r\n`
}

async function openWaits(mayfly: Mayfly): Promise<number> {
  const { body } = await call<string>(mayfly, 'GET', '/metrics')
  return Number(/^mayfly_open_waits (\d+)$/m.exec(body)?.[1] ?? NaN)
}
