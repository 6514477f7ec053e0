import { issueKey, openAccount, withKey, type KeyJson, type NewKeyJson } from '#test/harness/accounts.js'
import { call, create, type Target } from '#test/harness/client.js'
import { signIn } from '#test/harness/console.js'
import { endpointsPerTest } from '#test/harness/endpoint.js'
import { listen } from '#test/harness/event-stream.js'
import { makeFolder, startWithClock, type MayflyWithClock } from '#test/harness/mayfly-with-clock.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { deliveriesOf, registerWebhook } from '#test/harness/webhooks.js'

const DAY_MS = 86_400_000

describe('a key that expires', () => {
  const endpoints = endpointsPerTest()
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let mayfly: MayflyWithClock
  let admin: Target

  beforeAll(async () => {
    folder = await makeFolder()
    const env = { MAYFLY_COUNT_USAGE: 'false', MAYFLY_WEBHOOK_ALLOW_PRIVATE: 'true' }
    mayfly = await startWithClock(folder.path, Date.now(), env)
    await mayfly.runAhead(0)
    admin = withKey(mayfly, (await openAccount(mayfly)).key)
  })
  afterAll(async () => {
    await mayfly.close()
    await folder.remove()
  })

  const inDays = (days: number) => new Date(mayfly.now() + days * DAY_MS).toISOString()
  const stateOf = async ({ id }: KeyJson) => (await call<KeyJson>(admin, 'GET', `/v1/keys/${id}`)).body.state

  it('is refused from then on, and ends its streams and sessions', async () => {
    const key = await issueKey(admin, { scopes: ['inboxes', 'admin'], expires_at: inDays(1) })
    const caller = withKey(mayfly, key)
    const session = await signIn(caller)
    expect((await call(caller, 'GET', '/v1/inboxes')).status).toBe(200)
    const stream = await listen(caller, '/v1/events')
    await mayfly.skip(DAY_MS + 60_000)
    expectProblem(await call(caller, 'GET', '/v1/inboxes'), {
      status: 401,
      code: 'revoked-api-key',
      detail: new RegExp(`^The key ${key.id} expired at ${key.expires_at ?? ''}\\.$`),
    })
    await stream.end(10_000)
    expectProblem(await session.ask(['GET', '/console/sessions']), { status: 401, code: 'not-signed-in' })
    expect(await stateOf(key)).toBe('expired')
    expectProblem(await call(admin, 'POST', `/v1/keys/${key.id}/rotate`), {
      ...{ status: 400, code: 'invalid-request', at: [{ parameter: 'id' }] },
    })
    // Revoking it changes nothing.
    const { body } = await call<KeyJson>(admin, 'DELETE', `/v1/keys/${key.id}`)
    expect(body.state).toBe('expired')
  })

  it('is announced to webhooks of its environment 30 and 3 days before, unless its end is moved', async () => {
    const endpoint = await endpoints.start()
    const events = ['key.expiring']
    const staging = withKey(mayfly, await issueKey(admin, { scopes: ['admin'], expires_at: null }))
    const webhook = await registerWebhook(staging, '/v1/webhooks', { url: endpoint.url, events })
    const key = await issueKey(admin, { name: 'Nightly', expires_at: inDays(40) })
    const moved = await issueKey(admin, { expires_at: inDays(40) })
    await issueKey(admin, { environment: 'production', expires_at: inDays(40) })
    const other = await create<NewKeyJson>(admin, `/v1/keys/${moved.id}/rotate`, { expires_at: null })
    expect(other).toMatchObject({ id: moved.id, expires_at: null })
    for (const [days, count] of [
      [11, 1],
      [27, 2],
      [5, 2],
    ] as const) {
      await mayfly.skip(days * DAY_MS)
      await until(`${count} notices`, async () => (await deliveriesOf(staging, webhook.id)).length === count)
    }
    await until('the end of the key', async () => (await stateOf(key)) === 'expired')
    const deliveries = await deliveriesOf(staging, webhook.id)
    for (const delivery of deliveries) {
      expect(delivery).toMatchObject({
        event: 'key.expiring',
        key_id: key.id,
        domain_id: null,
        inbox_id: null,
      })
    }
    await until('both requests', () => Promise.resolve(endpoint.requests.length === 2))
    for (const { body } of endpoint.requests) {
      const { id, expires_at } = key
      expect(JSON.parse(body)).toMatchObject({
        type: 'key.expiring',
        data: { id, name: 'Nightly', environment: 'staging', expires_at },
      })
    }
    expect((await call(withKey(mayfly, other), 'GET', '/v1/inboxes')).status).toBe(200)
  })

  it('must expire in the future, within ten years', async () => {
    for (const expires_at of [inDays(-1), inDays(3_651), 'tomorrow', 7]) {
      const body = { name: 'CI', environment: 'staging', expires_at }
      expectProblem(await call(admin, 'POST', '/v1/keys', { body }), {
        ...{ status: 400, code: 'invalid-request' },
        at: [{ pointer: '/expires_at' }],
      })
    }
  })
})
