import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withKey, issueKey, openAccount } from '#test/harness/accounts.js'
import { call, only, pagesFrom, type Answer, type InboxJson } from '#test/harness/client.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { registerWebhook } from '#test/harness/webhooks.js'

interface KeyJson {
  id: string
  secret: string
}

const REUSED = { status: 422, code: 'idempotency-key-reused' }

describe('POST with an Idempotency-Key', () => {
  let mayfly: Mayfly
  let key: string

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())
  beforeEach(() => {
    key = randomUUID()
  })

  const post = <Body = InboxJson>(body: unknown, path = '/v1/inboxes', named = key) =>
    call<Body>(mayfly, 'POST', path, { body, headers: { 'idempotency-key': named } })

  const ofRun = async (run: string) =>
    (await pagesFrom<InboxJson>(mayfly, `/v1/inboxes?label=run:${run}`)).flatMap(({ body }) => body)

  const isReplayed = ({ headers }: Answer<unknown>) => headers.get('idempotent-replayed') === 'true'

  it('gets the same answer for every repeat, even after the inbox has changed or ended', async () => {
    const body = { name: 'once', labels: { run: key }, password_protected: true }
    const first = await post<InboxJson & { password: string }>(body)
    expect(first.status).toBe(201)
    expect(isReplayed(first)).toBe(false)
    await call(mayfly, 'DELETE', `/v1/inboxes/${first.body.id}`)
    for (const named of [key, `"${key}"`]) {
      const again = await post(body, '/v1/inboxes', named)
      expect(isReplayed(again)).toBe(true)
      expect({ status: again.status, body: again.body }).toEqual({ status: 201, body: first.body })
      for (const header of ['content-type', 'location', 'mayfly-cursor']) {
        expect(again.headers.get(header)).toBe(first.headers.get(header))
      }
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
      expect(again.headers.get('ratelimit')).not.toBeNull()
    }
    expect(await ofRun(key)).toEqual([])
    if (engineUnderTest() === 'distributed') return
    const stored = await readFile(join(mayfly.dataDir, 'idempotency', 'requests.mdb'))
    for (const text of [key, first.body.password, first.body.address])
      expect(stored.includes(text)).toBe(false)
  })

  it('creates one inbox for many concurrent requests, which all get the same answer', async () => {
    const body = { labels: { run: key } }
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(body)))
    expect(answers.some(({ status }) => status === 201)).toBe(true)
    for (const answer of answers.filter(({ status }) => status !== 201)) {
      expectProblem(answer, { status: 409, code: 'idempotency-key-in-use' })
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    const { id } = only(await ofRun(key))
    for (const { body: made } of answers.filter(({ status }) => status === 201)) expect(made.id).toBe(id)
    expect((await post(body)).body.id).toBe(id)
    expect(answers.filter((answer) => answer.status === 201 && !isReplayed(answer))).toHaveLength(1)
  })

  it('keeps inboxes in the order of their creation', async () => {
    const labels = { run: key }
    const made = [
      (await post({ labels })).body,
      (await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', { body: { labels } })).body,
      (await post({ labels }, '/v1/inboxes', randomUUID())).body,
    ]
    expect((await ofRun(key)).map(({ id }) => id)).toEqual(made.map(({ id }) => id).toReversed())
  })

  it('is bound to one method, path and body', async () => {
    const first = await post({ name: 'first' })
    expect(first.status).toBe(201)
    for (const [body, path] of [
      [{ name: 'second' }, '/v1/inboxes'],
      [undefined, '/v1/inboxes'],
      ['{ "name":"first"}', '/v1/inboxes'],
      [{ name: 'first' }, '/v1/emails'],
      [{ name: 'first' }, '/v1/inboxes?'],
    ] as const) {
      const problem = expectProblem(await post(body, path), REUSED)
      expect(problem.detail).toMatch('another method, path, body or inbox password')
    }
    expect((await post({ name: 'first' })).body).toEqual(first.body)
  })

  it('treats a missing body as an empty object', async () => {
    const first = await post(undefined)
    expect(first.status).toBe(201)
    for (const body of [{}, ' ', undefined]) {
      const again = await post(body)
      expect({ status: again.status, body: again.body }).toEqual({ status: 201, body: first.body })
    }
    expectProblem(await post({ name: 'other' }), REUSED)
  })

  it('stores nothing if the request was refused', async () => {
    const refused = [
      await post('{'),
      await post({ duration: '31d' }),
      await post({ colour: 'red' }),
      await post({}, '/v1/nothing'),
      await post({}, '/v1/inboxes/x'),
    ]
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 404, 405])
    const made = await post({ name: 'at last' })
    expect(made.status).toBe(201)
    expect(isReplayed(made)).toBe(false)
  })

  it('is separate for each API key, and its answer requires the same secret', async () => {
    const made = await post<KeyJson>({ name: 'mine', environment: 'development' }, '/v1/keys')
    const again = await post<KeyJson>({ name: 'mine', environment: 'development' }, '/v1/keys')
    expect([made.status, isReplayed(again)]).toEqual([201, true])
    expect(again.body).toEqual(made.body)

    const headers = { 'idempotency-key': key }
    const mine = { ...mayfly, apiKey: made.body.secret }
    const inbox = await call<InboxJson>(mine, 'POST', '/v1/inboxes', { headers })
    expect([inbox.status, isReplayed(inbox)]).toEqual([201, false])
    const rotated = await post<KeyJson>({}, `/v1/keys/${made.body.id}/rotate`, randomUUID())
    const renewed = { ...mayfly, apiKey: rotated.body.secret }
    const problem = expectProblem(await call(renewed, 'POST', '/v1/inboxes', { headers }), REUSED)
    expect(problem.detail).toMatch('another secret of this API key')
  })

  it('gives an answer about a protected inbox only with its password', async () => {
    const { body: inbox } = await post<InboxJson & { password: string }>({ password_protected: true })
    const withPassword = { headers: { 'mayfly-inbox-password': inbox.password } }
    const webhook = await registerWebhook(mayfly, `/v1/inboxes/${inbox.id}/webhooks`, {}, withPassword)
    const rotate = (password: Record<string, string>) =>
      call<KeyJson>(mayfly, 'POST', `/v1/webhooks/${webhook.id}/secret/rotate`, {
        headers: { 'idempotency-key': 'rotation', ...password },
      })
    const [first, again] = [await rotate(withPassword.headers), await rotate(withPassword.headers)]
    expect([first.status, isReplayed(again)]).toEqual([201, true])
    expect(again.body).toEqual(first.body)
    for (const other of [{}, { 'mayfly-inbox-password': '' }, { 'mayfly-inbox-password': 'x' }]) {
      const problem = expectProblem(await rotate(other), REUSED)
      expect(problem.detail).toMatch('another method, path, body or inbox password')
    }
  })

  it('gives no answer to an account that has lost its API access', async () => {
    const account = await openAccount(mayfly)
    const own = withKey(mayfly, await issueKey(withKey(mayfly, account.key)))
    const made = () => call(own, 'POST', '/v1/inboxes', { headers: { 'idempotency-key': key } })
    expect((await made()).status).toBe(201)
    await call(mayfly, 'PATCH', `/v1/accounts/${account.id}`, { body: { plan: 'free' } })
    expectProblem(await made(), { status: 403, code: 'plan-lacks-api-access' })
    await call(mayfly, 'PATCH', `/v1/accounts/${account.id}`, { body: { plan: 'pro' } })
    expect(isReplayed(await made())).toBe(true)
  })

  it('stores a 404, with the id of the first request', async () => {
    const path = '/v1/keys/key_01h455vb4pex5vsknk084sn02q/rotate'
    const first = expectProblem(await post({}, path), { status: 404, code: 'not-found' })
    const again = await post({}, path)
    expect(isReplayed(again)).toBe(true)
    expect(expectProblem(again, { status: 404, code: 'not-found' })).toEqual(first)
  })

  it.each(['with a blank', '"open', 'x'.repeat(256)])(
    'is refused if its format is invalid: %s',
    async (named) => {
      const at = [{ header: 'Idempotency-Key' }]
      expectProblem(await post({}, '/v1/inboxes', named), { status: 400, code: 'invalid-request', at })
    },
  )

  it('is ignored on other methods', async () => {
    const headers = { 'idempotency-key': 'with a blank' }
    const { id } = (await post({})).body
    expect((await call(mayfly, 'GET', `/v1/inboxes/${id}`, { headers })).status).toBe(200)
    const deleted = await call(mayfly, 'DELETE', `/v1/inboxes/${id}`, { headers })
    expect(deleted.status).toBe(200)
    expect(isReplayed(deleted)).toBe(false)
  })

  it('is kept after a restart', async () => {
    const first = await post({})
    expect(await mayfly.end('SIGTERM')).toBe(0)
    mayfly = await mayfly.restart()
    const again = await until('an answer', async () => {
      const answer = await post({})
      return answer.status === 503 ? null : answer
    })
    expect(isReplayed(again)).toBe(true)
    expect(again.body).toEqual(first.body)
  })
})
