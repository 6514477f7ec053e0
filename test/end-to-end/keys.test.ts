import { withKey, issueKey, openAccount, type KeyJson, type NewKeyJson } from '#test/harness/accounts.js'
import { call, createInbox, pagesFrom, type Answer, type Target } from '#test/harness/client.js'
import { listen } from '#test/harness/event-stream.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'

const DAY_MS = 86_400_000
const UNKNOWN = 'key_01h455vb4pex5vsknk084sn02q'

describe('keys', () => {
  let mayfly: Mayfly
  let admin: Target
  let adminKeyId: string

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    const { key } = await openAccount(mayfly)
    admin = withKey(mayfly, key)
    adminKeyId = key?.id ?? ''
    await until('usage to be counted', async () => {
      const { body } = await call<KeyJson>(admin, 'GET', `/v1/keys/${adminKeyId}`)
      return body.usage !== null
    })
  })
  afterAll(() => mayfly.dispose())

  const statusOf = async (target: Target) => (await call(target, 'GET', '/v1/account')).status
  const rotate = (id: string, body?: object) =>
    call<NewKeyJson>(admin, 'POST', `/v1/keys/${id}/rotate`, body === undefined ? {} : { body })

  function expectRevoked(answer: Answer<unknown>): void {
    expectProblem(answer, { status: 401, code: 'revoked-api-key' })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  }

  it('are issued with a secret that is shown once and works at once', async () => {
    const body = { name: 'CI', environment: 'staging' }
    const answer = await call<NewKeyJson>(admin, 'POST', '/v1/keys', { body })
    expect(answer.status).toBe(201)
    const { secret, ...key } = answer.body
    expect(secret).toMatch(/^mf_staging_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}$/)
    expect(answer.headers.get('location')).toBe(`/v1/keys/${key.id}`)
    expect(key).toEqual({
      id: expect.stringMatching(/^key_[0-7][0-9a-hjkmnp-tv-z]{25}$/) as string,
      name: 'CI',
      environment: 'staging',
      scopes: ['inboxes'],
      prefix: secret.slice(0, key.prefix.length),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as string,
      owner: 'service',
      member_id: null,
      created_by: adminKeyId,
      expires_at: new Date(Date.parse(key.created_at) + 365 * DAY_MS).toISOString(),
      last_used_at: null,
      state: 'active',
      rate_limit: null,
      usage: { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 },
    })
    expect((await call(admin, 'GET', `/v1/keys/${key.id}`)).body).toEqual(key)
    const caller = withKey(mayfly, { secret })
    expect((await createInbox(caller)).address).toMatch(/@/)
    const mistyped = withKey(mayfly, { secret: secret.slice(0, -1) + (secret.endsWith('a') ? 'b' : 'a') })
    expectProblem(await call(mistyped, 'GET', '/v1/inboxes'), {
      status: 401,
      code: 'invalid-api-key',
      detail: /mistyped/,
    })
    const { stdout, stderr } = mayfly.output()
    expect(stdout + stderr).not.toContain(secret)
  })

  it('have the requested scopes and limit', async () => {
    const scopes = ['read', 'audit']
    const key = await issueKey(admin, { scopes, rate_limit: 30 })
    expect(key).toMatchObject({ scopes, rate_limit: 30 })
    const reader = withKey(mayfly, key)
    expect((await call(reader, 'GET', '/v1/inboxes')).status).toBe(200)
    expectProblem(await call(reader, 'POST', '/v1/inboxes'), { status: 403, code: 'missing-scope' })
    expectProblem(await call(reader, 'GET', '/v1/keys'), { status: 403, code: 'missing-scope' })
    expect(await statusOf(reader)).toBe(200)
  })

  it.each([
    { body: {}, at: ['/name', '/environment'] },
    { body: { name: '' }, at: ['/name'] },
    { body: { environment: 'Staging' }, at: ['/environment'] },
    { body: { environment: '1' }, at: ['/environment'] },
    { body: { environment: 'a'.repeat(33) }, at: ['/environment'] },
    { body: { environment: 'a\n' }, at: ['/environment'] },
    { body: { scopes: [] }, at: ['/scopes'] },
    { body: { scopes: ['all'] }, at: ['/scopes'] },
    { body: { scopes: ['read', 'read'] }, at: ['/scopes'] },
    { body: { scopes: 'read' }, at: ['/scopes'] },
    { body: { rate_limit: 0 }, at: ['/rate_limit'] },
    { body: { rate_limit: 1.5 }, at: ['/rate_limit'] },
    { body: { rate_limit: '10' }, at: ['/rate_limit'] },
    { body: { rate_limit: 1_001 }, at: ['/rate_limit'], detail: /1000/ },
    { body: { account_id: 'acc' }, at: ['/account_id'] },
  ])('are refused with $body', async ({ body, at, detail }) => {
    const wanted = Object.keys(body).length === 0 ? body : { name: 'CI', environment: 'staging', ...body }
    expectProblem(await call(admin, 'POST', '/v1/keys', { body: wanted }), {
      status: 400,
      code: 'invalid-request',
      at: at.map((pointer) => ({ pointer })),
      ...(detail === undefined ? {} : { detail }),
    })
  })

  it('of scope operator can only be issued and rotated by keys of that scope', async () => {
    const scopes = ['operator', 'inboxes']
    const refused = await call(admin, 'POST', '/v1/keys', {
      body: { name: 'x', environment: 'staging', scopes },
    })
    expectProblem(refused, { status: 403, code: 'missing-scope' })
    const operator = await issueKey(mayfly, { scopes })
    const adminBesides = withKey(mayfly, await issueKey(mayfly, { scopes: ['admin'] }))
    const taken = await call(adminBesides, 'POST', `/v1/keys/${operator.id}/rotate`)
    expectProblem(taken, { status: 403, code: 'missing-scope' })
    expect((await call(withKey(mayfly, operator), 'GET', '/v1/accounts?limit=1')).status).toBe(200)
    expect((await call(mayfly, 'POST', `/v1/keys/${operator.id}/rotate`)).status).toBe(201)
  })

  it('are listed newest first, page by page, without their secrets', async () => {
    const keys: NewKeyJson[] = []
    for (let issued = 0; issued < 3; issued += 1) keys.push(await issueKey(admin, { name: `key ${issued}` }))
    const pages = await pagesFrom<KeyJson>(admin, '/v1/keys?limit=2')
    const listed = pages.flatMap(({ body }) => body)
    const ids = listed.map(({ id }) => id)
    expect(ids.slice(0, 3)).toEqual(keys.map(({ id }) => id).toReversed())
    expect(ids.at(-1)).toBe(adminKeyId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { secret } of keys) expect(JSON.stringify(listed)).not.toContain(secret)
    const ascending = await pagesFrom<KeyJson>(admin, '/v1/keys?order=asc&limit=100')
    expect(ascending.flatMap(({ body }) => body.map(({ id }) => id))).toEqual(ids.toReversed())
  })

  it('get another secret at once by rotation; the previous one stops working', async () => {
    const before = await issueKey(admin)
    const answer = await rotate(before.id)
    expect(answer.status).toBe(201)
    const { secret, prefix, ...after } = answer.body
    const { secret: oldSecret, prefix: _prefix, ...facts } = before
    expect(after).toEqual(facts)
    expect(secret).not.toBe(oldSecret)
    expect(secret.startsWith(prefix)).toBe(true)
    expect(await statusOf(withKey(mayfly, answer.body))).toBe(200)
    expectRevoked(await call(withKey(mayfly, before), 'GET', '/v1/inboxes'))
    expect((await call(admin, 'GET', `/v1/keys/${before.id}`)).body).toMatchObject({ prefix })
  })

  it('keep the previous secret for the grace of a rotation', async () => {
    const before = await issueKey(admin)
    const { body: after } = await rotate(before.id, { grace: '15s' })
    expect(await statusOf(withKey(mayfly, before))).toBe(200)
    expect(await statusOf(withKey(mayfly, after))).toBe(200)
    await until('the end of the grace', async () => (await statusOf(withKey(mayfly, before))) === 401, 60_000)
    expectRevoked(await call(withKey(mayfly, before), 'GET', '/v1/inboxes'))
    expect(await statusOf(withKey(mayfly, after))).toBe(200)
  })

  it('have at most one previous secret that works', async () => {
    const first = await issueKey(admin)
    const { body: second } = await rotate(first.id, { grace: '7d' })
    const { body: third } = await rotate(first.id, { grace: '1h' })
    const statuses = await Promise.all([first, second, third].map((key) => statusOf(withKey(mayfly, key))))
    expect(statuses).toEqual([401, 200, 200])
  })

  it('that are rotated by concurrent requests get one of the secrets, and each request learns the result', async () => {
    const { id } = await issueKey(admin)
    const answers = await Promise.all([1, 2, 3].map(() => rotate(id, { grace: '1h' })))
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    const { body } = await call<KeyJson>(admin, 'GET', `/v1/keys/${id}`)
    const statuses = await Promise.all(answers.map((each) => statusOf(withKey(mayfly, each.body))))
    // The current and the previous secret.
    expect(statuses.toSorted()).toEqual([200, 200, 401])
    expect(answers.map((each) => each.body.prefix)).toContain(body.prefix)
  })

  it.each(['8d', '169h', '1', '', '-1m', '30 m', 30, null])(
    'are not rotated with grace %p',
    async (grace) => {
      const key = await issueKey(admin)
      expectProblem(await rotate(key.id, { grace }), {
        status: 400,
        code: 'invalid-request',
        at: [{ pointer: '/grace' }],
      })
      expect(await statusOf(withKey(mayfly, key))).toBe(200)
    },
  )

  it('are issued and rotated once for one Idempotency-Key; repeats get the same secret', async () => {
    const body = { name: 'once', environment: 'staging' }
    const headers = { 'idempotency-key': 'issue-once' }
    const issue = () => call<NewKeyJson>(admin, 'POST', '/v1/keys', { body, headers })
    const [first, again] = [await issue(), await issue()]
    expect(again).toMatchObject({ status: 201, body: first.body })
    const path = `/v1/keys/${first.body.id}/rotate`
    const turn = () =>
      call<NewKeyJson>(admin, 'POST', path, { headers: { 'idempotency-key': 'rotate-once' } })
    const [rotated, repeated] = [await turn(), await turn()]
    expect(repeated).toMatchObject({ status: 201, body: rotated.body })
    expect(await statusOf(withKey(mayfly, rotated.body))).toBe(200)
    const { body: keys } = await call<KeyJson[]>(admin, 'GET', '/v1/keys?limit=100')
    expect(keys.filter(({ name }) => name === 'once')).toHaveLength(1)
  })

  it('are revoked permanently; a repeat gets the same answer', async () => {
    const key = await issueKey(admin)
    const { body: rotated } = await rotate(key.id, { grace: '7d' })
    const path = `/v1/keys/${key.id}`
    const first = await call<KeyJson>(admin, 'DELETE', path)
    expect(first).toMatchObject({ status: 200, body: { id: key.id, state: 'revoked' } })
    for (const secret of [key, rotated])
      expectRevoked(await call(withKey(mayfly, secret), 'GET', '/v1/inboxes'))
    expect(await call(admin, 'DELETE', path)).toMatchObject({ status: 200, body: first.body })
    expect((await call(admin, 'GET', path)).body).toEqual(first.body)
    const pages = await pagesFrom<KeyJson>(admin, '/v1/keys?limit=100')
    expect(pages.flatMap(({ body }) => body)).toContainEqual(first.body)
    expectProblem(await rotate(key.id), {
      status: 400,
      code: 'invalid-request',
      detail: /revoked/,
      at: [{ parameter: 'id' }],
    })
  })

  it('end their open waits and streams within a second of their revocation', async () => {
    const secondsToTheEnd = async () => {
      const key = await issueKey(admin)
      const own = withKey(mayfly, key)
      const inbox = await createInbox(own)
      const stream = await listen(own, `/v1/inboxes/${inbox.id}/events`)
      const wait = call(own, 'GET', `/v1/inboxes/${inbox.id}/messages/wait?timeout=55`)
      // The wait has begun when a later request is answered.
      expect(await statusOf(own)).toBe(200)
      const startedAtMs = performance.now()
      expect((await call(admin, 'DELETE', `/v1/keys/${key.id}`)).status).toBe(200)
      expectRevoked(await wait)
      await stream.end()
      return (performance.now() - startedAtMs) / 1_000
    }
    // Without a check of the key, they would notice only after four and ten seconds. A busy machine delays some.
    await until('both to end in time', async () => (await secondsToTheEnd()) < 3.5)
  })

  it('can revoke themselves', async () => {
    const { key } = await openAccount(mayfly)
    const own = withKey(mayfly, key)
    expect(await call(own, 'DELETE', `/v1/keys/${key?.id}`)).toMatchObject({
      status: 200,
      body: { state: 'revoked' },
    })
    expectRevoked(await call(own, 'GET', '/v1/keys'))
  })

  it('no longer define an environment of the account once all of its keys are revoked', async () => {
    const { key } = await openAccount(mayfly)
    const own = withKey(mayfly, key)
    const environments = async () =>
      (await call<{ environments: string[] }>(own, 'GET', '/v1/account')).body.environments
    const [one, two] = [
      await issueKey(own, { environment: 'ci' }),
      await issueKey(own, { environment: 'ci' }),
    ]
    expect(await environments()).toEqual(['ci', 'production'])
    await call(own, 'DELETE', `/v1/keys/${one.id}`)
    expect(await environments()).toEqual(['ci', 'production'])
    await call(own, 'DELETE', `/v1/keys/${two.id}`)
    expect(await environments()).toEqual(['production'])
  })

  it('have the time of their last use', async () => {
    const key = await issueKey(admin)
    const lastUse = async () =>
      (await call<KeyJson>(admin, 'GET', `/v1/keys/${key.id}`)).body.last_used_at ?? null
    const from = Date.now()
    await call(withKey(mayfly, key), 'GET', '/v1/inboxes')
    const first = Date.parse((await lastUse()) ?? '')
    expect(first).toBeGreaterThanOrEqual(from)
    expect(first).toBeLessThanOrEqual(Date.now())
    await until('the clock to move on', () => Date.now() > first)
    // The request is refused, but the key was used.
    await call(withKey(mayfly, key), 'GET', '/v1/keys')
    expect(Date.parse((await lastUse()) ?? '')).toBeGreaterThan(first)
    expect((await call<KeyJson>(admin, 'DELETE', `/v1/keys/${key.id}`)).body.last_used_at).toBe(
      await lastUse(),
    )
  })

  it.each([UNKNOWN, 'x', 'acc_01h455vb4pex5vsknk084sn02q', '__proto__'])(
    'are not found as %s',
    async (id) => {
      const requests: [string, string][] = [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/rotate'],
      ]
      for (const [method, tail] of requests) {
        expectProblem(await call(admin, method, `/v1/keys/${id}${tail}`), { status: 404, code: 'not-found' })
      }
    },
  )

  it('are the same after a restart, including their last use', async () => {
    const before = await startMayfly({ isOneProcess: true })
    const used = await issueKey(before)
    const rotated = await issueKey(before)
    const revoked = await issueKey(before)
    await call(withKey(before, used), 'GET', '/v1/inboxes')
    await call(before, 'POST', `/v1/keys/${rotated.id}/rotate`)
    await call(before, 'DELETE', `/v1/keys/${revoked.id}`)
    const keys = async (target: Target) => (await call<KeyJson[]>(target, 'GET', '/v1/keys')).body
    // Usage, if it is counted, is counted a moment later.
    const isCounted = ({ id, usage }: KeyJson) => id !== used.id || usage === null || usage.requests === 1
    const listed = await until('the request to be counted', async () => {
      const found = await keys(before)
      return found.every(isCounted) ? found : null
    })
    expect(await before.end('SIGTERM')).toBe(0)
    const after = await before.restart()
    const own = ({ name }: KeyJson) => name === 'bootstrap'
    expect((await keys(after)).filter((key) => !own(key))).toEqual(listed.filter((key) => !own(key)))
    expect(await statusOf(withKey(after, used))).toBe(200)
    for (const key of [rotated, revoked]) expectRevoked(await call(withKey(after, key), 'GET', '/v1/inboxes'))
    await after.dispose()
  })
})
