import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeBlocks } from '#test/harness/client-packages.js'
import { call } from '#test/harness/client.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { runProgram } from '#test/harness/run-program.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith } from '#test/harness/tools.js'
import { SignUpApplication } from './sign-up-application.js'

const CLIENT = join(process.cwd(), 'clients/python')
const WITHIN_MS = 60_000

interface Run {
  code: number
  log: string
  /** Requests and failures by method and name. */
  requests: Record<string, { sent: number; failed: number }>
}

/** Runs locustfiles with the real Locust. */
describeWith('python-packages')('the Locust user', () => {
  let mayfly: SharedMayfly
  let python: string
  let folder: string

  beforeAll(async () => {
    ;[mayfly, python] = await Promise.all([sharedMayfly(), pythonWithPackages()])
    folder = await mkdtemp(join(tmpdir(), 'mayfly-locust-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Users finish the task that runs when the time is over. */
  async function locust(
    file: string,
    { env = {}, options = [] }: { env?: Record<string, string>; options?: readonly string[] },
  ): Promise<Run> {
    const bounds = ['--headless', '--run-time', '6s', '--stop-timeout', '30', '--spawn-rate', '100', '--json']
    const args = ['-m', 'locust', '-f', file, ...bounds, ...options]
    const ran = await runProgram(python, args, {
      cwd: folder,
      timeout: WITHIN_MS,
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: CLIENT,
        PYTHONDONTWRITEBYTECODE: '1',
        MAYFLY_URL: mayfly.url,
        MAYFLY_KEY: mayfly.apiKey,
        ...env,
      },
    })
    const stats = JSON.parse(ran.stdout) as {
      method: string
      name: string
      num_requests: number
      num_failures: number
    }[]
    const requests = stats.map(
      ({ method, name, num_requests: sent, num_failures: failed }) =>
        [`${method} ${name}`, { sent, failed }] as const,
    )
    return { code: ran.code, log: ran.stderr, requests: Object.fromEntries(requests) }
  }

  /** Runs the body of a task once, by one user. */
  async function locustOnce(body: string, env: Record<string, string> = {}): Promise<Run> {
    const file = join(folder, 'once.py')
    await writeFile(
      file,
      `
from locust import constant, task
from mayfly_client.locust import MayflyUser

class Once(MayflyUser):
    wait_time = constant(600)

    @task
    def once(self):
${body.replaceAll(/^ */gm, ' '.repeat(8))}
`,
    )
    return locust(file, { env, options: ['--users', '1'] })
  }

  /** Runs a locustfile with the user `SignUp` so that each user has one task. */
  async function locustOnceEach(source: string, ...options: string[]): Promise<Run> {
    const file = join(folder, 'once_each.py')
    await writeFile(file, `${source}\nfrom locust import constant\nSignUp.wait_time = constant(600)\n`)
    return locust(file, { options })
  }

  it('runs its example', async () => {
    const example = await readFile(join(CLIENT, 'example/locustfile.py'), 'utf8')
    const { code, log, requests } = await locustOnceEach(example, '--users', '3')
    expect({ code, log }).toEqual({ code: 0, log: expect.stringContaining('exit code 0') as string })
    const counts = { sent: 3, failed: 0 }
    expect(requests).toEqual({
      'POST /v1/inboxes': counts,
      'POST /v1/inboxes/{id}/messages': counts,
      'GET /v1/inboxes/{id}/messages/wait': { sent: 6, failed: 0 },
      'DELETE /v1/inboxes/{id}': counts,
    })
    const path = '/v1/inboxes?label=run:locust&limit=1000'
    expect((await call(mayfly, 'GET', path)).body).toEqual([])
    expect((await call(mayfly, 'GET', `${path}&state=deleted`)).body).toHaveLength(3)
  })

  it('runs the example of docs/load-testing.md', async () => {
    await using application = await SignUpApplication.start(mayfly)
    const blocks = await codeBlocks('docs/load-testing.md', 'In k6, Locust, Gatling and JMeter')
    const source = blocks.find((block) => block.includes('from locust import')) ?? ''
    const { code, log, requests } = await locustOnceEach(source, '--users', '2', '--host', application.url)
    expect({ code, log }).toEqual({ code: 0, log: expect.stringContaining('exit code 0') as string })
    expect(application.verified).toBe(2)
    const counts = { sent: 2, failed: 0 }
    expect(requests).toMatchObject({
      'POST /sign-up': counts,
      'POST /verify': counts,
      'GET /v1/inboxes/{id}/messages/wait': counts,
    })
  })

  it('reports routes without ids, and answers that are streams', async () => {
    const { code, requests } = await locustOnce(`
      inbox = self.mayfly.inboxes.create(labels={"run": "streams"})
      inbox.inject_message(from_="a@example.com", subject="One", attachments=[
      {"filename": "a.txt", "content_type": "text/plain", "content": "SGVsbG8="}])
      assert inbox.wait_for_message().attachments[0].bytes() == b"Hello"
      since = self.mayfly.messages.cursor()
      inbox.inject_message(from_="a@example.com", subject="Two")
      next(self.mayfly.messages.events(since=since, labels={"run": "streams"}))
      assert list(self.mayfly.runs.verify("run:streams", []))[-1]["kind"] == "summary"
    `)
    const once = { sent: 1, failed: 0 }
    expect(requests).toMatchObject({
      'GET /v1/inboxes/{id}/messages/{id}/attachments/0': once,
      'GET /v1/events': once,
      'POST /v1/runs/run:streams/verify': once,
    })
    expect(code).toBe(0)
  })

  it('reports a missing mail as an exception of the task', async () => {
    const { code, log, requests } = await locustOnce(`
      inbox = self.mayfly.inboxes.create()
      inbox.inject_message(from_="a@example.com", subject="Welcome")
      inbox.wait_for_message(subject="invoice", timeout=1)
    `)
    expect(log).toMatch(/WaitTimeoutError: No message for \S+ matched within 1 s: subject contains "invoice"/)
    expect(log).toMatch(/"Welcome".*: subject does not contain "invoice"/)
    expect(requests['GET /v1/inboxes/{id}/messages/wait']?.failed).toBe(0)
    expect(code).toBe(1)
  })

  it.each([
    {
      reason: 'the key is wrong',
      env: { MAYFLY_KEY: 'wrong' },
      error: /401 invalid-api-key: Invalid API key\. Check that the key was copied whole/,
      raised: /ApiError: .+ \(401 invalid-api-key\)/,
    },
    {
      reason: 'Mayfly does not run',
      env: { MAYFLY_URL: 'http://127.0.0.1:1' },
      error: /ConnectError\(.*Connection refused/,
      raised: /UnreachableError: Mayfly is not reachable at http:\/\/127\.0\.0\.1:1: .+ Start it/,
    },
  ])('reports failed requests if $reason', async ({ env, error, raised }) => {
    const { code, log, requests } = await locustOnce('self.mayfly.inboxes.create()', env)
    const { sent, failed } = requests['POST /v1/inboxes'] ?? {}
    expect(failed).toBeGreaterThan(0)
    expect(failed).toBe(sent)
    const [, report = ''] = log.split('Error report')
    expect(report).toMatch(error)
    expect(log).toMatch(raised)
    expect(code).toBe(1)
  })
})
