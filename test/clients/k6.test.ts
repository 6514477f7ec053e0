import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeBlocks } from '#test/harness/client-packages.js'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { RecordingProxy } from './recording-proxy.js'
import { SignUpApplication } from './sign-up-application.js'

const WITHIN_MS = 60_000
const THRESHOLDS_FAILED = 99
const ABORTED = 108

interface Summary {
  root_group: { checks: Record<string, { passes: number; fails: number }> }
  /** Of each threshold, whether it has failed. */
  metrics: Record<string, { passes: number; fails: number; thresholds?: Record<string, boolean> }>
}

interface Run {
  code: number
  output: string
  summary: Summary
  /** The number of requests by their name and status. */
  requests: Record<string, number>
}

/** Runs scripts with the real k6, in a folder beside the module. */
describeWith('k6')('the k6 module', () => {
  let mayfly: SharedMayfly
  let folder: string

  beforeAll(async () => {
    mayfly = await sharedMayfly()
    folder = await mkdtemp(join(tmpdir(), 'mayfly-k6-'))
    await cp('clients/k6', folder, { recursive: true })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  async function k6(script: string, env: Record<string, string> = {}, ...options: string[]): Promise<Run> {
    const points = join(folder, 'points.json')
    const summary = join(folder, 'summary.json')
    const outputs = ['--out', `json=${points}`, '--summary-export', summary]
    const { code, stdout, stderr } = await runProgram(
      'k6',
      ['run', '--quiet', ...outputs, ...options, script],
      {
        cwd: folder,
        timeout: WITHIN_MS,
        env: {
          PATH: process.env.PATH,
          K6_NO_USAGE_REPORT: 'true',
          MAYFLY_URL: mayfly.url,
          MAYFLY_KEY: mayfly.apiKey,
          ...env,
        },
      },
    )
    return {
      code,
      output: stdout + stderr,
      summary: JSON.parse(await readFile(summary, 'utf8')) as Summary,
      requests: countOf(await readFile(points, 'utf8')),
    }
  }

  /** Runs the body of a test function once. */
  async function k6Once(body: string, env: Record<string, string> = {}): Promise<Run> {
    const script = `import * as mayfly from './mayfly.js'
      export const options = { thresholds: { http_req_failed: ['rate==0'] } }
      export default function () { ${body} }`
    await writeFile(join(folder, 'once.js'), script)
    return k6('once.js', env)
  }

  async function inboxesOf(label: string, state: string): Promise<InboxJson[]> {
    return (await call<InboxJson[]>(mayfly, 'GET', `/v1/inboxes?label=${label}&state=${state}`)).body
  }

  it('runs its example', async () => {
    const { code, output, summary, requests } = await k6('example.js', { RUN: 'example' })
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining('checks_succeeded') as string,
    })
    expect(summary.root_group.checks).toMatchObject({
      'has the code': { passes: 9, fails: 0 },
      'has the link': { passes: 9, fails: 0 },
    })
    const wait = 'http_req_duration{name:GET /v1/inboxes/{id}/messages/wait}'
    expect(summary.metrics.checks?.thresholds).toEqual({ 'rate==1': false })
    expect(summary.metrics.http_req_failed?.thresholds).toEqual({ 'rate==0': false })
    expect(summary.metrics[wait]?.thresholds).toEqual({ 'p(95)<5000': false })
    expect(requests).toEqual({
      'POST /v1/inboxes 201': 9,
      'POST /v1/inboxes/{id}/messages 201': 9,
      'GET /v1/inboxes/{id}/messages/wait 200': 9,
      'DELETE /v1/inboxes/{id} 200': 9,
    })
    expect(await inboxesOf('run:example', 'active')).toEqual([])
    expect(await inboxesOf('run:example', 'deleted')).toHaveLength(9)
  })

  it('runs the example of docs/load-testing.md', async () => {
    await using application = await SignUpApplication.start(mayfly)
    const blocks = await codeBlocks('docs/load-testing.md', 'In k6, Locust, Gatling and JMeter')
    const script = blocks.find((block) => block.includes("from 'k6/http'")) ?? ''
    await writeFile(join(folder, 'sign-up.js'), script)
    const bounds = ['--vus', '2', '--iterations', '4']
    const { code, output, summary } = await k6('sign-up.js', { APP_URL: application.url }, ...bounds)
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining('checks_succeeded') as string,
    })
    expect(summary.metrics.checks).toMatchObject({ passes: 4, fails: 0 })
    expect(application.verified).toBe(4)
  })

  it('sends requests at a fixed rate with the script of docs/load-testing.md', async () => {
    const blocks = await codeBlocks('docs/load-testing.md', 'Send requests at a fixed rate')
    await writeFile(join(folder, 'list.js'), (blocks[0] ?? '').replace("'1m'", "'1s'"))
    const { code, requests } = await k6('list.js')
    expect(code).toBe(0)
    expect(requests['GET /v1/inboxes/{id}/messages 200']).toBeGreaterThanOrEqual(100)
  })

  it('waits for later mail, for a number of messages, and in a protected inbox', async () => {
    const { code, output } = await k6Once(
      `
      const settings = { url: '${mayfly.url}/', key: '${mayfly.apiKey}' }
      const labels = { run: 'counted' }
      const inbox = mayfly.createInbox({ password_protected: true, labels }, settings)
      const send = (to, subject) => mayfly.injectMessage(to, { from: 'a@example.com', subject, headers: { 'X-N': '1' } }, settings)
      send(inbox, 'One & only')
      send(inbox, 'Two')
      const first = mayfly.waitForMessage(inbox, { subject: 'one &', header: ['X-N:1', 'Subject:'] }, settings)
      const second = mayfly.waitForMessage(inbox, { cursor: first.cursor }, settings)
      send(mayfly.createInbox({ labels }, settings), 'Three')
      const { count } = mayfly.waitForCount({ label: 'run:counted', count: 1, timeout: 10 }, settings)
      const { text, groups } = mayfly.waitForMatch(inbox, /^ONE \\u0026 (O)(x?)/i, {}, settings)
      console.log([first.subject, second.subject, count, text, groups].join())
    `,
      { MAYFLY_URL: 'http://127.0.0.1:1', MAYFLY_KEY: 'none' },
    )
    expect(output).toContain('"One & only,Two,1,One & o,o,"')
    expect(code).toBe(0)
  })

  it('says what arrived if a mail is missing, and counts one failed request', async () => {
    const { code, output, summary, requests } = await k6Once(`
      const inbox = mayfly.createInbox()
      mayfly.injectMessage(inbox, { from: 'a@example.com', subject: 'Welcome' })
      mayfly.waitForMessage(inbox, { subject: 'invoice', timeout: 1 })
    `)
    expect(code).toBe(THRESHOLDS_FAILED)
    expect(output).toContain('MayflyError: GET ')
    expect(output).toContain('(404 no-matching-message)')
    expect(output).toMatch(/Welcome.*: subject does not contain .*invoice/)
    expect(summary.metrics.http_req_failed).toMatchObject({ passes: 1, fails: 2 })
    expect(requests['GET /v1/inboxes/{id}/messages/wait 404']).toBe(1)
  })

  it('says how many messages are missing', async () => {
    await createInbox(mayfly, { labels: { run: 'short' } })
    const { code, output } = await k6Once(`mayfly.waitForCount({ label: 'run:short', count: 2, timeout: 1 })`)
    expect(code).toBe(THRESHOLDS_FAILED)
    expect(output).toContain('have received 0 messages, and at least 2 were expected')
  })

  it.each([
    {
      reason: 'the key is wrong',
      env: { MAYFLY_KEY: 'wrong' },
      error: /POST http\S+\/v1\/inboxes: .+ \(401 invalid-api-key\) Check that the key was copied whole/,
    },
    {
      reason: 'Mayfly does not run',
      env: { MAYFLY_URL: 'http://127.0.0.1:1' },
      error: /POST http:\/\/127\.0\.0\.1:1\/v1\/inboxes: .*refused.* Check that Mayfly runs/,
    },
    {
      reason: 'a property is unknown',
      properties: '{ colour: 1 }',
      error: /\(400 invalid-request\) Correct what[^]*\/colour: /,
    },
  ])('says that $reason', async ({ env = {}, properties = '', error }) => {
    const { code, output } = await k6Once(`mayfly.createInbox(${properties})`, env)
    expect(output).toMatch(error)
    expect(code).toBe(THRESHOLDS_FAILED)
  })

  it('ends the test if there is no key', async () => {
    const { code, output } = await k6Once('mayfly.createInbox()', { MAYFLY_KEY: '' })
    expect(output).toContain('No API key: set MAYFLY_KEY')
    expect(code).toBe(ABORTED)
  })

  describe('behind a server that refuses requests', () => {
    let proxy: RecordingProxy

    beforeAll(async () => {
      proxy = await RecordingProxy.start(mayfly.url)
    })
    afterAll(() => proxy[Symbol.asyncDispose]())
    afterEach(() => fetch(`${proxy.url}/__faults`, { method: 'DELETE' }))

    const fault = (body: object) =>
      fetch(`${proxy.url}/__faults`, { method: 'POST', body: JSON.stringify(body) })

    it('sends a request again after the time in Retry-After', async () => {
      await fault({ method: 'POST', path: '/v1/inboxes$', times: 1, status: 429, retryAfter: 1 })
      await fault({ method: 'POST', path: '/v1/inboxes$', times: 1, status: 503, retryAfter: 1 })
      await fault({ method: 'GET', path: 'messages/wait$', times: 1, status: 429, retryAfter: 1 })
      const { requests, output } = await k6Once(
        `const inbox = mayfly.createInbox()
         mayfly.injectMessage(inbox, { from: 'a@example.com', subject: 'Late' })
         console.log(mayfly.waitForMessage(inbox).subject)`,
        { MAYFLY_URL: proxy.url },
      )
      expect(output).toContain('msg=Late')
      expect(requests).toMatchObject({
        'GET /v1/inboxes/{id}/messages/wait 429': 1,
        'GET /v1/inboxes/{id}/messages/wait 200': 1,
        'POST /v1/inboxes 429': 1,
        'POST /v1/inboxes 503': 1,
        'POST /v1/inboxes 201': 1,
      })
    })

    it('gives up if Retry-After is later than the time of the request', async () => {
      await fault({ method: 'POST', path: '/v1/inboxes$', times: 1, status: 429, retryAfter: 3600 })
      const { code, output } = await k6Once('mayfly.createInbox()', { MAYFLY_URL: proxy.url })
      expect(output).toContain('(429 rate-limited)')
      expect(code).toBe(THRESHOLDS_FAILED)
    })

    it('asks again if the wait is longer than the API waits, and counts no failed request', async () => {
      const problem = { status: 404, code: 'no-matching-message', detail: 'None yet.', fix: 'Wait.' }
      const headers = { 'content-type': 'application/problem+json' }
      const answer = { status: 404, headers, body: JSON.stringify(problem) }
      await fault({ method: 'GET', path: 'messages/wait$', times: 2, answer })
      const { code, requests } = await k6Once(
        `const inbox = mayfly.createInbox()
         mayfly.injectMessage(inbox, { from: 'a@example.com', subject: 'Late' })
         mayfly.waitForMessage(inbox, { timeout: 90 })`,
        { MAYFLY_URL: proxy.url },
      )
      expect(code).toBe(0)
      expect(requests).toMatchObject({
        'GET /v1/inboxes/{id}/messages/wait 404': 2,
        'GET /v1/inboxes/{id}/messages/wait 200': 1,
      })
    })

    it('does not take the answer of another server for one of Mayfly', async () => {
      await fault({ method: 'POST', path: '/v1/inboxes$', times: 1, answer: { status: 502, body: 'oh no' } })
      const { code, output } = await k6Once('mayfly.createInbox()', { MAYFLY_URL: proxy.url })
      expect(output).toContain('the answer 502 does not come from Mayfly')
      expect(code).toBe(THRESHOLDS_FAILED)
    })
  })
})

function countOf(points: string): Record<string, number> {
  const requests: Record<string, number> = {}
  for (const line of points.trimEnd().split('\n')) {
    const { type, metric, data } = JSON.parse(line) as {
      type: string
      metric: string
      data: { tags: { name: string; status: string } }
    }
    if (type !== 'Point' || metric !== 'http_reqs') continue
    const request = `${data.tags.name} ${data.tags.status}`
    requests[request] = (requests[request] ?? 0) + 1
  }
  return requests
}
