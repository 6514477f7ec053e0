import { readFile } from 'node:fs/promises'
import {
  call,
  createInbox,
  inboxWith,
  mail,
  messagesOf,
  only,
  type Answer,
  type ProblemJson,
} from '#test/harness/client.js'
import { issueKey, openAccount, withKey, type AccountJson } from '#test/harness/accounts.js'
import { engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { freePort } from '#infra/servers/ports.js'
import { speakHttp } from '#test/harness/wire.js'

describe('operations', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it('report that the process is live and ready', async () => {
    expect(await call(mayfly, 'GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await call(mayfly, 'GET', '/readyz')).toMatchObject({ status: 200, body: { status: 'ready' } })
  })

  it('name the version, the commit and the engine', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string }
    const { status, body } = await call<{ commit: string | null }>(mayfly, 'GET', '/version')
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        version,
        commit: body.commit === null ? null : (expect.stringMatching(/^[0-9a-f]{40}$/) as string),
        engine: engineUnderTest(),
      },
    })
    const metrics = (await call<string>(mayfly, 'GET', '/metrics')).body
    const labels = `version="${version}",commit="${body.commit ?? ''}",engine="${engineUnderTest()}"`
    expect(metrics).toContain(`mayfly_build_info{${labels}} 1`)
  })

  it('count active inboxes', async () => {
    const one = await startMayfly({ isOneProcess: true })
    const active = async () =>
      /^mayfly_active_inboxes (\d+)$/m.exec((await call<string>(one, 'GET', '/metrics')).body)?.[1]
    const inboxes = [await createInbox(one), await createInbox(one), await createInbox(one)]
    await until('the inboxes to be counted', async () => (await active()) === '3')
    await call(one, 'DELETE', `/v1/inboxes/${inboxes[0]?.id ?? ''}`)
    await until('the deletion to be counted', async () => (await active()) === '2')
    await one.dispose()
  })

  it('count requests by route, never by path', async () => {
    const inbox = await inboxWith(mayfly, mail('counted'))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    const message = `/v1/inboxes/${inbox.id}/messages/${id}`
    const paths = [`/v1/inboxes/${inbox.id}`, message, `${message}/raw`, '/v1/inboxes/someone', '/who/knows']
    for (const path of [...paths, '/v1/inboxes/%zz', '/problems/nobody']) await call(mayfly, 'GET', path)
    await speakHttp(mayfly, 'PROPFIND /somewhere/else HTTP/1.1\r\nHost: x\r\n\r\n')
    const accept = 'text/plain;version=0.0.4'
    const { headers, body } = await call<string>(mayfly, 'GET', '/metrics', { headers: { accept } })
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(body).toMatch(/^mayfly_http_request_seconds_count\{.*route="\/v1\/inboxes\/\{id\}".*\} \d+$/m)
    const names = [
      inbox.id,
      inbox.address.split('@')[0] ?? '',
      id,
      'someone',
      'knows',
      'nobody',
      '%zz',
      'else',
    ]
    for (const name of names) expect(body).not.toContain(name)
  })

  it('spell a route as the OpenAPI document does', async () => {
    const inbox = await inboxWith(mayfly, mail('spelled'))
    const { id } = only(await messagesOf(mayfly, inbox.id, 1))
    await call(mayfly, 'GET', `/v1/emails/${inbox.id}/messages/${id}/attachments/0`)
    const { body: document } = await call<{ paths: object }>(mayfly, 'GET', '/openapi.json')
    const routes = await until('the metrics to have the request', async () => {
      const { body: metrics } = await call<string>(mayfly, 'GET', '/metrics')
      const found = new Set([...metrics.matchAll(/\broute="(\/[^"]*)"/g)].map(([, route]) => route))
      return found.has('/v1/emails/{id}/messages/{message_id}/attachments/{index}') && found
    })
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining([...routes]))
  })

  it('have a bounded number of series for any requests', async () => {
    const unknownRoute = /^mayfly_http_request_seconds_count\{.*route="unknown".*\} (\d+)$/m
    const requests = (metrics: string) => Number(unknownRoute.exec(metrics)?.[1] ?? 0)
    const seriesAfter = (count: number) =>
      until('the metrics to have the requests', async () => {
        const { body: metrics } = await call<string>(mayfly, 'GET', '/metrics')
        if (requests(metrics) < count) return null
        return metrics.split('\n').filter((line) => /^mayfly_http/.test(line)).length
      })
    const request = async (from: number) => {
      for (let index = from; index < from + 50; index += 1) {
        await call(mayfly, 'GET', `/v1/inboxes/inb_${index}`)
        await call(mayfly, 'GET', `/nowhere/${index}`)
      }
    }
    await request(0)
    const before = await seriesAfter(50)
    await request(50)
    expect(await seriesAfter(100)).toBe(before)
  })

  it.each([
    { metric: 'mayfly_http_request_seconds_count' },
    { metric: 'process_resident_memory_bytes' },
    { metric: 'nodejs_eventloop_lag_seconds' },
  ])('show $metric', async ({ metric }) => {
    expect((await call<string>(mayfly, 'GET', '/metrics')).body).toContain(metric)
  })

  it.each(['/healthz', '/readyz', '/metrics', '/problems/not-found'])(
    'accept no parameters: %s',
    async (path) => {
      const at = [{ parameter: 'x' }]
      expectProblem(await call(mayfly, 'GET', `${path}?x=1`), { status: 400, code: 'invalid-request', at })
    },
  )

  it('have a page for every problem', async () => {
    const codes = [
      'invalid-request',
      'malformed-json',
      'missing-api-key',
      'invalid-api-key',
      'plan-lacks-api-access',
      'missing-scope',
      'not-found',
      'method-not-allowed',
      'not-acceptable',
      'inbox-deleted',
      'inbox-expired',
      'message-deleted',
      'body-too-large',
      'unsupported-media-type',
      'internal-error',
      'catching-up',
      'log-unavailable',
      'read-model-unavailable',
      'too-many-streams',
      'shutting-down',
    ]
    for (const code of codes) {
      const { status, headers, body } = await call<string>(mayfly, 'GET', `/problems/${code}`)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^text\/html/)
      expect(body).toContain(code)
    }
  })

  it('log one line per request, without content', async () => {
    const inbox = await createInbox(mayfly, { name: 'a-secret-name' })
    const { headers } = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
    const requestId = headers.get('x-request-id') ?? 'none'
    const line = await until('the line', () => linesWith(mayfly, requestId)[0])
    expect(JSON.parse(line)).toMatchObject({ method: 'GET', route: '/v1/inboxes/{id}', status: 200 })
    expect(linesWith(mayfly, requestId)).toHaveLength(1)
    expect(mayfly.output().stderr).not.toContain('a-secret-name')
  })

  it('name the key of the caller, and apart from it that of the path', async () => {
    const { key } = await openAccount(mayfly, { plan: 'enterprise' })
    const admin = withKey(mayfly, key)
    const { id, secret } = await issueKey(admin, { scopes: ['admin'] })
    const lineOf = async ({ headers }: Answer<unknown>) => {
      const requestId = headers.get('x-request-id') ?? 'none'
      const line = await until('the line', () => linesWith(mayfly, requestId)[0])
      return JSON.parse(line) as Record<string, unknown>
    }
    const read = await call(withKey(mayfly, { secret }), 'GET', `/v1/keys/${key?.id ?? ''}`)
    expect(await lineOf(read)).toMatchObject({ keyId: id, pathKeyId: key?.id })
    const opened = await call<AccountJson>(admin, 'GET', '/v1/account')
    const account = await call(mayfly, 'GET', `/v1/accounts/${opened.body.id}`)
    const line = await lineOf(account)
    expect(line).toMatchObject({ pathAccountId: opened.body.id })
    expect(line.accountId).toMatch(/^acc_/)
    expect(line.accountId).not.toBe(opened.body.id)
    // Without a valid key there is no caller.
    const anonymous = await call({ ...mayfly, apiKey: 'unknown' }, 'GET', `/v1/keys/${id}`)
    const refused = await lineOf(anonymous)
    expect([refused.keyId, refused.pathKeyId]).toEqual([undefined, id])
  })
})

function linesWith(mayfly: Mayfly, text: string): string[] {
  return mayfly
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes(text))
}

describe('an instance with a public URL and a domain', () => {
  let mayfly: Mayfly
  let metricsPort: number

  beforeAll(async () => {
    metricsPort = await freePort()
    const publicUrl = 'https://mail.example/mayfly/'
    mayfly = await startMayfly({
      env: {
        MAYFLY_PUBLIC_URL: publicUrl,
        MAYFLY_METRICS_PORT: String(metricsPort),
        MAYFLY_MAIL_DOMAIN: 'Post.Example',
      },
    })
  })
  afterAll(() => mayfly.dispose())

  it('names problems under its public URL', async () => {
    const { body } = await call<ProblemJson>(mayfly, 'GET', '/nothing')
    expect(body.type).toBe('https://mail.example/mayfly/problems/not-found')
    const [broken] = await speakHttp(mayfly, 'hello\r\n\r\n')
    expect(broken?.body).toContain('"https://mail.example/mayfly/problems/invalid-request"')
  })

  it('serves metrics only on their own port', async () => {
    const elsewhere = { url: `http://127.0.0.1:${metricsPort}`, smtpPort: 0, apiKey: '' }
    const metrics = await call<string>(elsewhere, 'GET', '/metrics')
    expect(metrics.status).toBe(200)
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(metrics.body).toContain('mayfly_http_request_seconds')
    expectProblem(await call(mayfly, 'GET', '/metrics'), { status: 404, code: 'not-found' })
    expect((await call(elsewhere, 'GET', '/v1/inboxes')).status).toBe(404)
    expect((await call(elsewhere, 'POST', '/metrics')).status).toBe(405)
  })

  it('creates addresses in its domain, in lower case', async () => {
    const inbox = await inboxWith(mayfly, mail('here'))
    expect(inbox.address).toMatch(/^\w{20}@post\.example$/)
  })
})
