import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { issueKey, withKey } from '#test/harness/accounts.js'
import { call, mail, messagesOf, pagesFrom, send, type InboxJson, type Target } from '#test/harness/client.js'
import { sharedMayfly, type SharedMayfly } from '#test/harness/shared-mayfly.js'
import { until } from '#test/harness/until.js'

const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')
const WITHIN_MS = 60_000

interface LatencyJson {
  p50: number
  p95: number
  p99: number
  max: number
}

interface OperationJson {
  requests: number
  statuses: Record<string, number>
  errors: Record<string, number>
  latency_ms: Record<'from_schedule' | 'from_start', LatencyJson | null>
}

interface ReportJson {
  scheduled: number
  requests: number
  operations: Record<'create' | 'list' | 'wait', OperationJson>
  max_retry_after_s: number | null
  rate: { wanted: number; reached: number }
  is_interrupted: boolean
}

describe('mayfly load http', () => {
  let mayfly: SharedMayfly

  beforeAll(async () => {
    mayfly = await sharedMayfly()
  })

  function start(target: Pick<Target, 'url' | 'apiKey'>, args: readonly string[]) {
    const env = { PATH: process.env.PATH, MAYFLY_URL: target.url, MAYFLY_KEY: target.apiKey }
    const child = spawn(process.execPath, [MAIN, '--json', 'load', 'http', ...args], {
      env,
      timeout: WITHIN_MS,
    })
    const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]).then(
      ([[code], stdout, stderr]) => ({ code: code as number | null, stdout, stderr }),
    )
    return { child, ended }
  }

  async function run(target: Pick<Target, 'url' | 'apiKey'>, ...args: string[]) {
    const { code, stdout, stderr } = await start(target, args).ended
    return { code, stderr, report: stdout === '' ? null : (JSON.parse(stdout) as ReportJson) }
  }

  const inboxesOf = async (label: string) => {
    const pages = await pagesFrom<InboxJson>(mayfly, `/v1/inboxes?label=${label}&limit=1000`)
    return pages.flatMap(({ body }) => body)
  }

  it('sends each operation by its share, and counts the answers', async () => {
    const label = 'run:http-1'
    const args = ['--rate', '100/s', '--duration', '2s', '--label', label, '--inboxes', '5', '--wait', '0']
    const { code, stderr, report } = await run(mayfly, ...args, '--mix', 'create=10,list=60,wait=30')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(report).toMatchObject({ scheduled: 200, requests: 200, max_retry_after_s: null })
    const { create, list, wait } = report?.operations ?? {}
    // The operations are spread evenly, so their numbers are nearly exact.
    expect(Math.abs((create?.requests ?? 0) - 20)).toBeLessThanOrEqual(2)
    expect(Math.abs((list?.requests ?? 0) - 120)).toBeLessThanOrEqual(2)
    expect(create?.statuses).toEqual({ 201: create?.requests })
    expect(list?.statuses).toEqual({ 200: list?.requests })
    expect(wait?.statuses).toEqual({ 404: wait?.requests })
    for (const operation of [create, list, wait]) {
      expect(operation?.errors).toEqual({})
      const { from_schedule: fromSchedule, from_start: fromStart } = operation?.latency_ms ?? {}
      expect(fromSchedule?.max).toBeGreaterThanOrEqual(fromStart?.max ?? Infinity)
    }
    expect(await inboxesOf(label)).toHaveLength(5 + (create?.requests ?? 0))
  })

  it('uses the inboxes that have the label, with --reuse, and waits there for mail', async () => {
    const labels = { run: 'http-2' }
    const { body: inbox } = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', { body: { labels } })
    await send(mayfly, inbox.address, mail('For a wait'))
    await messagesOf(mayfly, inbox.id, 1)
    const args = ['--rate', '50/s', '--duration', '400ms', '--label', 'run:http-2', '--reuse']
    const { report } = await run(mayfly, ...args, '--mix', 'wait=1')
    expect(report?.operations).toMatchObject({ wait: { requests: 20, statuses: { 200: 20 } } })
    expect(await inboxesOf('run:http-2')).toHaveLength(1)
    const none = await run(mayfly, ...args, '--label', 'other:one')
    expect(none).toMatchObject({ code: 3, report: null })
  })

  it('counts answers 429 and their Retry-After, and sends nothing again', async () => {
    const limited = withKey(mayfly, await issueKey(mayfly, { environment: 'development', rate_limit: 20 }))
    const args = ['--rate', '200/s', '--duration', '500ms', '--label', 'run:http-3', '--inboxes', '1']
    const { code, report } = await run(limited, ...args, '--mix', 'list=1')
    expect(code).toBe(0)
    expect(report?.requests).toBe(100)
    const { 200: answered = 0, 429: refused = 0 } = report?.operations.list.statuses ?? {}
    // A burst allows half of the limit once more.
    expect(answered).toBeLessThanOrEqual(31)
    expect(answered + refused).toBe(100)
    expect(report?.max_retry_after_s).toBeGreaterThanOrEqual(1)
  })

  it('counts requests without an answer and answers of 500 or more, and then exits with 1', async () => {
    let requests = 0
    const server = createServer((request, response) => {
      if (request.url === '/v1/inboxes/bulk') {
        response.statusCode = 201
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify([{ id: 'inb_1', address: 'one@mayfly.test' }]))
      } else if (requests++ % 2 === 0) request.socket.destroy()
      else response.writeHead(500).end('no')
    }).listen(0, '127.0.0.1')
    server.keepAliveTimeout = 0
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const args = ['--rate', '100/s', '--duration', '200ms', '--label', 'run:http-4', '--inboxes', '1']
    const { code, stderr, report } = await run({ url, apiKey: 'key' }, ...args, '--mix', 'list=1')
    server.close()
    server.closeAllConnections()
    const { statuses, errors } = report?.operations.list ?? {}
    const lost = Object.values(errors ?? {}).reduce((sum, count) => sum + count, 0)
    expect(statuses).toEqual({ 500: 10 })
    expect(lost).toBe(10)
    expect(code).toBe(1)
    expect(stderr).toContain('20 requests had no answer, or one of 500 or more')
  })

  it('ends with a report after Ctrl-C', async () => {
    const label = 'run:http-5'
    const args = [
      '--rate',
      '20/s',
      '--duration',
      '5m',
      '--label',
      label,
      '--inboxes',
      '1',
      '--mix',
      'create=1',
    ]
    const running = start(mayfly, args)
    await until('the first requests', async () => (await inboxesOf(label)).length > 5)
    running.child.kill('SIGINT')
    const { code, stdout } = await running.ended
    expect(code).toBe(130)
    const report = JSON.parse(stdout) as ReportJson
    expect(report).toMatchObject({ scheduled: 6_000, is_interrupted: true })
    expect(report.operations.create.statuses).toEqual({ 201: report.requests })
    expect(await inboxesOf(label)).toHaveLength(1 + report.requests)
  })

  it('reports an invalid command line', async () => {
    const valid = ['--rate', '1/s', '--duration', '1s', '--label', 'run:x']
    const wrong = [
      { args: ['--mix', 'delete=1'], says: /create=10,list=60,wait=30/ },
      { args: ['--wait', '56'], says: /at most 55/ },
      { args: ['--connections', '0'], says: /from 1 to 10000/ },
      { args: ['--label', 'x'], says: /<name>:<value>/ },
    ]
    for (const { args, says } of wrong) {
      const { code, stderr } = await run(mayfly, ...valid, ...args)
      expect({ args, code }).toEqual({ args, code: 2 })
      expect(stderr).toMatch(says)
    }
  })
})
