import { basename } from 'node:path'
import { hashSecret } from '#apps/api/access/credentials.js'
import { readSettings } from '#libs/config/settings.js'
import { openEngine } from '#libs/engine/open-engine.js'
import { Recorder } from '#libs/event-log/recorder.js'
import { mintId } from '#libs/typeid/mint.js'
import { call, type Answer } from '#test/harness/client.js'
import { distributedEnvironment, engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder } from '#test/harness/standalone.js'
import { expectProblem } from '#test/harness/problem.js'

interface Standing {
  policy: string
  remaining: number
  seconds: number
}

/** What the headers of an answer say, once they agree with each other. */
function standingOf({ headers }: Pick<Answer<unknown>, 'headers'>): Standing {
  const [, policy = '', r, t] = /^"(\w+)";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
  const policies = headers.get('ratelimit-policy') ?? ''
  const [, quota] = new RegExp(`"${policy}";q=(\\d+);w=\\d+`).exec(policies) ?? []
  expect(headers.get('x-ratelimit-limit')).toBe(quota)
  expect(headers.get('x-ratelimit-remaining')).toBe(r)
  const resetInS = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1_000
  expect(Math.abs(resetInS - Number(t))).toBeLessThanOrEqual(2)
  return { policy, remaining: Number(r), seconds: Number(t) }
}

/** Records an account on the plan starter, with a key, before Mayfly runs. */
async function recordStarter(dataDir: string, secret: string): Promise<void> {
  const settings = readSettings({
    MAYFLY_DATA_DIR: dataDir,
    MAYFLY_BOOTSTRAP_API_KEY: secret,
    ...(engineUnderTest() === 'distributed' ? distributedEnvironment(basename(dataDir)) : {}),
  })
  const now = () => new Date()
  const fail = (error: unknown) => {
    throw error
  }
  const engine = await openEngine({ settings, role: 'test', now, onError: fail })
  const recorder = new Recorder(engine.log, '/mayfly/api', now)
  const [accountId, keyId] = [mintId('acc'), mintId('key')]
  const attribution = { accountId, keyId, environment: 'development' }
  await recorder.recordAccountEvent(
    { type: 'AccountOpened', accountId, name: 'starter', plan: 'starter', openedAt: now() },
    attribution,
  )
  await recorder.recordAccountEvent(
    {
      ...attribution,
      type: 'ApiKeyIssued',
      name: 'starter',
      scopes: ['inboxes'],
      secretHash: hashSecret(secret),
      prefix: 'starter',
      issuedAt: now(),
    },
    attribution,
  )
  await engine.close()
}

const STARTER = 'a-key-of-an-account-on-starter'
const NO_SUCH = '/v1/inboxes/inb_01h455vb4pex5vsknk084sn02q'

describe('rate limits', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    const { path: dataDir } = await makeFolder()
    await recordStarter(dataDir, STARTER)
    mayfly = await startMayfly({ dataDir })
  })
  afterAll(() => mayfly.dispose())

  it('are told in every answer to a valid key, and each of these counts one', async () => {
    const before = standingOf(await call(mayfly, 'GET', '/v1/inboxes'))
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
      const { policy, remaining, seconds } = standingOf(answer)
      expect({ policy, remaining }).toEqual({ policy: 'sustained', remaining: before.remaining - index - 1 })
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThanOrEqual(60)
    }
  })

  it('let a key do its minute, then its burst, and refuse it alone from then on', async () => {
    const starter = { ...mayfly, apiKey: STARTER }
    const answers = await Promise.all(Array.from({ length: 120 }, () => call(starter, 'GET', NO_SUCH)))
    for (const { status } of answers) expect(status).toBe(404)
    const told: Standing[] = []
    for (let sent = 120; sent < 150; sent += 1) {
      const answer = await call(starter, 'GET', NO_SUCH)
      expect(answer.status).toBe(404)
      expect(answer.headers.get('ratelimit-policy')).toBe('"sustained";q=100;w=60, "burst";q=50;w=600')
      told.push(standingOf(answer))
    }
    const remaining = [...Array.from({ length: 29 }, (_, index) => 29 - index), 0]
    expect(told.map((standing) => standing.remaining)).toEqual(remaining)
    expect(told.slice(0, -1).every(({ policy }) => policy === 'burst')).toBe(true)
    expect(told.at(-1)?.policy).toBe('sustained')

    for (const [method, path] of [
      ['GET', NO_SUCH],
      ['POST', '/v1/inboxes'],
      ['PUT', '/v1/inboxes'],
    ] as const) {
      const refused = await call(starter, method, path)
      expectProblem(refused, { status: 429, code: 'rate-limited' })
      const { policy, remaining: left, seconds } = standingOf(refused)
      expect({ policy, left }).toEqual({ policy: 'sustained', left: 0 })
      expect(refused.headers.get('retry-after')).toBe(String(seconds))
      expect(seconds).toBeLessThanOrEqual(60)
    }
    expect((await call(mayfly, 'GET', '/v1/inboxes')).status).toBe(200)
  })

  it('are not told without a valid key, nor where none is needed', async () => {
    for (const path of ['/v1/inboxes', '/v1/inboxes/%zz', '/v1/nothing']) {
      const answer = await call(mayfly, 'GET', path, { headers: { authorization: 'Bearer another-one' } })
      expectProblem(answer, { status: 401, code: 'invalid-api-key' })
      expect(answer.headers.get('ratelimit')).toBeNull()
    }
    expect((await call(mayfly, 'GET', '/healthz')).headers.get('ratelimit-policy')).toBeNull()
  })
})
