import { issueKey, openAccount, withKey } from '#test/harness/accounts.js'
import { call, createInbox, type Answer, type Target } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { expectProblem } from '#test/harness/problem.js'

interface QuotaState {
  policy: string
  remaining: number
  seconds: number
}

/** The state in the headers of an answer. Expects that all headers agree. */
function quotaStateOf({ headers }: Pick<Answer<unknown>, 'headers'>): QuotaState {
  const [, policy = '', r, t] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
  const policies = headers.get('ratelimit-policy') ?? ''
  const [, quota] = new RegExp(`"${policy}";q=(\\d+);w=\\d+`).exec(policies) ?? []
  expect(headers.get('x-ratelimit-limit')).toBe(quota)
  expect(headers.get('x-ratelimit-remaining')).toBe(r)
  const answeredAtS = Date.parse(headers.get('date') ?? '') / 1_000
  const resetInS = Number(headers.get('x-ratelimit-reset')) - answeredAtS
  expect(Math.abs(resetInS - Number(t))).toBeLessThanOrEqual(2)
  return { policy, remaining: Number(r), seconds: Number(t) }
}

const NO_SUCH = '/v1/inboxes/inb_01h455vb4pex5vsknk084sn02q'

describe('rate limits', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  /** A new key that may make that many requests per minute. */
  async function keyWith(rateLimit: number): Promise<Target> {
    const body = { name: 'limited', environment: 'development', rate_limit: rateLimit }
    const made = await call<{ secret: string }>(mayfly, 'POST', '/v1/keys', { body })
    expect(made.status).toBe(201)
    return { ...mayfly, apiKey: made.body.secret }
  }

  it('are in every answer to a valid key, and each request counts', async () => {
    const before = quotaStateOf(await call(mayfly, 'GET', '/v1/inboxes'))
    const requests = [
      { send: 'POST /v1/inboxes', status: 201 },
      { send: 'POST /v1/emails', body: '{', status: 400 },
      { send: 'POST /v1/inboxes', body: { colour: 'red' }, status: 400 },
      { send: 'GET /v1/inboxes/%zz', status: 400 },
      { send: `GET ${NO_SUCH}`, status: 404 },
      { send: 'GET /v1/nothing', status: 404 },
      { send: 'PUT /v1/inboxes', status: 405 },
      { send: 'GET /v1/inboxes', headers: { accept: 'text/html' }, status: 406 },
      { send: 'POST /v1/inboxes', body: ' '.repeat(300_000), status: 413 },
      { send: 'POST /v1/inboxes', body: 'x', headers: { 'content-type': 'text/plain' }, status: 415 },
      { send: 'HEAD /v1/inboxes', status: 200 },
    ]
    for (const [index, { send, status, ...options }] of requests.entries()) {
      const [method = '', path = ''] = send.split(' ')
      const answer = await call(mayfly, method, path, options)
      expect({ send, status: answer.status }).toEqual({ send, status })
      expect(answer.headers.get('ratelimit-policy')).toBe(
        '"sustained";q=1000000;w=60, "burst";q=500000;w=600',
      )
      const { policy, remaining, seconds } = quotaStateOf(answer)
      expect({ policy, remaining }).toEqual({ policy: 'sustained', remaining: before.remaining - index - 1 })
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThanOrEqual(60)
    }
  })

  it('allow the quota of a minute, then the burst, and then refuse this key only', async () => {
    const limited = await keyWith(10)
    const states: unknown[] = []
    for (let sent = 0; sent < 15; sent += 1) {
      const answer = await call(limited, 'GET', NO_SUCH)
      expect(answer.status).toBe(404)
      expect(answer.headers.get('ratelimit-policy')).toBe('"sustained";q=10;w=60, "burst";q=5;w=600')
      const { policy, remaining } = quotaStateOf(answer)
      states.push([policy, remaining])
    }
    expect(states).toEqual([
      ...[9, 8, 7, 6, 5, 4, 3, 2, 1].map((left) => ['sustained', left]),
      ...[5, 4, 3, 2, 1].map((left) => ['burst', left]),
      ['sustained', 0],
    ])

    for (const [method, path] of [
      ['GET', NO_SUCH],
      ['POST', '/v1/inboxes'],
      ['PUT', '/v1/inboxes'],
    ] as const) {
      const refused = await call(limited, method, path)
      expectProblem(refused, { status: 429, code: 'rate-limited' })
      const { policy, remaining: left, seconds } = quotaStateOf(refused)
      expect({ policy, left }).toEqual({ policy: 'sustained', left: 0 })
      expect(refused.headers.get('retry-after')).toBe(String(seconds))
      expect(seconds).toBeLessThanOrEqual(60)
    }
    for (const other of [mayfly, await keyWith(10)]) {
      expect((await call(other, 'GET', '/v1/inboxes')).status).toBe(200)
    }
  })

  it('allow exactly both quotas for concurrent requests', async () => {
    const limited = await keyWith(21)
    const answers = await Promise.all(Array.from({ length: 60 }, () => call(limited, 'GET', NO_SUCH)))
    const of = (wanted: number) => answers.filter(({ status }) => status === wanted).length
    expect([of(404), of(429)]).toEqual([31, 29])
  })

  it('allow an account no more with many keys and tokens, and then refuse all of them', async () => {
    const limits = { requests_per_minute: 800, account_requests_per_minute: 2_400 }
    const { key } = await openAccount(mayfly.operator, { plan: 'enterprise', limits })
    const admin = withKey(mayfly, key)
    const unused = withKey(mayfly, await issueKey(admin))
    const { id } = await createInbox(unused)
    const token = await call<{ token: string }>(unused, 'POST', `/v1/inboxes/${id}/tokens`)
    // Counts as a hundred requests.
    const ids = Array.from({ length: 10_000 }, () => NO_SUCH.slice(-30))
    const refusals: Answer<unknown>[] = []
    for (let keys = 0; keys < 3; keys += 1) {
      const caller = withKey(mayfly, await issueKey(admin))
      for (let sent = 0; sent < 9; sent += 1) {
        const answer = await call(caller, 'POST', '/v1/inboxes/bulk-delete', { body: { ids } })
        if (answer.status !== 200) refusals.push(answer)
      }
    }
    const reading = [unused, withKey(mayfly, { secret: token.body.token }), admin].map((caller) =>
      call(caller, 'GET', `/v1/inboxes/${id}`),
    )
    refusals.push(...(await Promise.all(reading)))
    expect(refusals.length).toBeGreaterThan(3)
    for (const refused of refusals) {
      expectProblem(refused, { status: 429, code: 'rate-limited', detail: /account.* 2400 .* together/ })
      const { remaining, seconds } = quotaStateOf(refused)
      expect(remaining).toBe(0)
      expect(refused.headers.get('retry-after')).toBe(String(seconds))
    }
    expect((await call(mayfly, 'GET', '/v1/inboxes')).status).toBe(200)
  })

  it('are not in answers without a valid key, or if no key is required', async () => {
    for (const path of ['/v1/inboxes', '/v1/inboxes/%zz', '/v1/nothing']) {
      const answer = await call(mayfly, 'GET', path, { headers: { authorization: 'Bearer another-one' } })
      expectProblem(answer, { status: 401, code: 'invalid-api-key' })
      expect(answer.headers.get('ratelimit')).toBeNull()
    }
    expect((await call(mayfly, 'GET', '/healthz')).headers.get('ratelimit-policy')).toBeNull()
  })
})
