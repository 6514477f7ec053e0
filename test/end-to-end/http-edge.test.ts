import { setTimeout as pause } from 'node:timers/promises'
import type { Document } from '#apps/api/openapi/openapi-json.js'
import { call, createInbox, type InboxJson, type RequestOptions } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { httpPort, openWire, readAnswers, speakHttp, type Wire } from '#test/harness/wire.js'

const APP = 'https://app.example'
const asPage = (origin: string, headers: Record<string, string> = {}): RequestOptions => ({
  headers: { origin, ...headers },
})
const preflight = (origin: string): RequestOptions =>
  asPage(origin, { 'access-control-request-method': 'POST', authorization: '' })
const corsHeaders = (headers: Headers) => [...headers.keys()].filter((name) => /^access-control-/.test(name))

describe('HTTP with default settings', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true })
  })
  afterAll(() => mayfly.dispose())

  it.each([
    ['GET', '/v1/inboxes'],
    ['POST', '/v1/inboxes'],
    ['GET', '/v1/inboxes/x'],
    ['GET', '/v1/%zz'],
    ['PUT', '/v1/inboxes'],
    ['GET', '/nothing'],
    ['GET', '/healthz'],
    ['GET', '/metrics'],
    ['GET', '/problems/not-found'],
  ])('forbids caching and content sniffing: %s %s', async (method, path) => {
    const { headers } = await call(mayfly, method, path)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('does so for a request that can not be parsed', async () => {
    const [answer] = await speakHttp(mayfly, 'hello\r\n\r\n')
    expect(answer?.headers.get('cache-control')).toBe('no-store')
    expect(answer?.headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('has pages that load nothing, can not be framed and send no referrer', async () => {
    const { headers } = await call(mayfly, 'GET', '/problems/not-found')
    const policy = headers.get('content-security-policy') ?? ''
    for (const rule of [
      "default-src 'none'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
    ]) {
      expect(policy).toContain(rule)
    }
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('x-frame-options')).toBe('DENY')
  })

  it('allows no other origin', async () => {
    const answer = await call(mayfly, 'GET', '/v1/inboxes', asPage(APP))
    expect(answer.status).toBe(200)
    expect(corsHeaders(answer.headers)).toEqual([])
    const asked = await call(mayfly, 'OPTIONS', '/v1/inboxes', asPage(APP))
    expectProblem(asked, { status: 405, code: 'method-not-allowed' })
    expect(corsHeaders(asked.headers)).toEqual([])
  })

  it('generates the request id, and logs the id of the client too', async () => {
    const mine = 'id-of-the-client'
    const { headers } = await call(mayfly, 'GET', '/v1/inboxes/nobody?', {
      headers: { 'x-request-id': mine },
    })
    const reqId = headers.get('x-request-id') ?? ''
    expect(reqId).toMatch(/^req_[0-9a-f]{32}$/)
    expect(await lineOf(mayfly, reqId)).toMatchObject({ clientRequestId: mine })
  })

  it('logs the key, route and outcome of a request, and no content', async () => {
    const agent = `tests/1 ${'a'.repeat(1_000)}`
    const said = { name: 'said-in-a-body', label: 'said-in-a-query', password: 'said-as-a-password' }
    const body = JSON.stringify({ name: said.name })
    const created = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
      body,
      headers: { 'user-agent': agent, 'mayfly-inbox-password': said.password },
    })
    const line = await lineOf(mayfly, created.headers.get('x-request-id') ?? '')
    expect(line).toMatchObject({
      method: 'POST',
      route: '/v1/inboxes',
      status: 201,
      accountId: expect.stringMatching(/^acc_/) as unknown,
      keyId: expect.stringMatching(/^key_/) as unknown,
      bytesIn: body.length,
      remoteAddress: '127.0.0.1',
      userAgent: agent.slice(0, 200),
    })
    expect(line.ms).toBeGreaterThan(0)
    expect(line.bytesOut).toBeGreaterThan(JSON.stringify(created.body).length)
    expect(line).not.toHaveProperty('problem')

    const path = `/v1/inboxes/${created.body.id}/messages/${said.label}?subject=${said.label}`
    const refused = await call(mayfly, 'GET', path)
    expect(await lineOf(mayfly, refused.headers.get('x-request-id') ?? '')).toMatchObject({
      route: '/v1/inboxes/{id}/messages/{message_id}',
      inboxId: created.body.id,
      status: 400,
      problem: 'invalid-request',
    })
    const { stderr } = mayfly.output()
    for (const text of Object.values(said)) expect(stderr).not.toContain(text)
    expect(stderr).not.toContain(mayfly.apiKey)
  })

  it.each([
    { what: 'no HTTP', localAddress: '127.0.0.8', send: 'hello\r\n\r\n' },
    {
      what: 'a path that can’t be decoded',
      localAddress: '127.0.0.9',
      send: 'GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n',
    },
  ])('logs requests that reach no handler: $what', async ({ localAddress, send }) => {
    const [answer] = await speakHttp(mayfly, send, { localAddress })
    const line = await lineOf(mayfly, answer?.headers.get('x-request-id') ?? 'none')
    expect(line).toMatchObject({ status: 400, problem: 'invalid-request', remoteAddress: localAddress })
  })

  it.each([
    { status: 401, path: '/v1/inboxes', localAddress: '127.0.0.2', headers: () => Promise.resolve('') },
    { status: 404, path: '/nothing', localAddress: '127.0.0.4', headers: () => Promise.resolve('') },
    {
      status: 429,
      path: '/v1/inboxes',
      localAddress: '127.0.0.3',
      headers: async () => {
        const body = { name: 'limited', environment: 'development', rate_limit: 1 }
        const key = await call<{ secret: string }>(mayfly, 'POST', '/v1/keys', { body })
        return `Authorization: Bearer ${key.body.secret}\r\n`
      },
    },
  ])('logs many refused requests in few lines, and counts each: $status', async (flood) => {
    const count = 500
    const request = `GET ${flood.path} HTTP/1.1\r\nHost: x\r\n${await flood.headers()}\r\n`
    const before = await countOf(mayfly, flood.status)
    const wire = await openWire(httpPort(mayfly), flood.localAddress)
    wire.write(request.repeat(count))
    const answers = await until('all answers', () => {
      const read = readAnswers(wire.received())
      return read.length === count ? read : null
    })
    wire.close()
    const refused = answers.filter(({ status }) => status === flood.status).length
    expect(refused).toBeGreaterThan(count - 10)
    const lines = await until('lines that account for all of them', () => {
      const found = linesOf(mayfly).filter(
        ({ status, remoteAddress, keyId, refused: more }) =>
          status === flood.status &&
          (remoteAddress === flood.localAddress || (keyId !== undefined && more !== undefined)),
      )
      const counted = found.reduce(
        (sum, line) => sum + (typeof line.refused === 'number' ? line.refused : 1),
        0,
      )
      return counted === refused ? found : null
    })
    expect(lines.length).toBeLessThan(count / 10)
    expect(lines[0]).toMatchObject({ method: 'GET', status: flood.status })
    await until('the metric', async () => (await countOf(mayfly, flood.status)) >= before + refused)
  })

  it.each([
    {
      what: 'requests without a key whose client leaves',
      status: 499,
      // More than are answered before the client leaves, however late it does: 200 in a second.
      send: 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100),
    },
    { what: 'connections that send no HTTP', status: 400, send: 'hello\r\n\r\n'.repeat(10) },
  ])('logs many $what in few lines', async ({ status, send }) => {
    const localAddress = `127.0.1.${status - 399}`
    const opened = Array.from({ length: 100 }, () => openWire(httpPort(mayfly), localAddress))
    const wires = await Promise.all(opened)
    for (const wire of wires) wire.write(send)
    await until('the first answers', () => wires.filter((wire) => wire.received() !== '').length >= 10)
    for (const wire of wires) wire.close()
    const lines = await until('lines that account for many of them', () => {
      const found = linesOf(mayfly).filter(
        (line) => line.status === status && line.remoteAddress === localAddress,
      )
      const count = found.reduce((sum, { refused }) => sum + (typeof refused === 'number' ? refused : 1), 0)
      return count >= wires.length && found
    })
    expect(lines.length).toBeLessThan(wires.length / 5)
  })

  it('answers requests without a key at a bounded rate, and those with a key at once', async () => {
    const count = 500
    const beganAtMs = performance.now()
    const wire = await openWire(httpPort(mayfly), '127.0.0.5')
    wire.write('GET /version HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
    expect((await call(mayfly, 'GET', '/v1/inboxes')).status).toBe(200)
    await until('all answers', () => wire.received().split('HTTP/1.1 200').length - 1 === count)
    wire.close()
    // 100 at once, then one every 5 ms.
    expect(performance.now() - beganAtMs).toBeGreaterThan((count - 100 - 1) * 5)
  })

  it('logs that a client disconnected before its answer', async () => {
    const wire = await openWire(httpPort(mayfly))
    const head = `POST /v1/inboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mayfly.apiKey}\r\n`
    wire.write(`${head}X-Request-Id: the-one-that-left\r\nContent-Length: 100\r\n\r\n{`)
    const before = await call(mayfly, 'GET', '/metrics')
    expect(before.status).toBe(200)
    wire.close()
    expect(await lineOf(mayfly, 'the-one-that-left')).toMatchObject({ method: 'POST', status: 499 })
  })
})

describe('HTTP with configured limits and origins', () => {
  let mayfly: Mayfly
  const connections = 20

  beforeAll(async () => {
    mayfly = await startMayfly({
      isOneProcess: true,
      env: {
        MAYFLY_HTTP_REQUEST_TIMEOUT_MS: '3000',
        MAYFLY_HTTP_MAX_CONNECTIONS: String(connections),
        MAYFLY_CORS_ORIGINS: `${APP}, http://localhost:5173`,
      },
    })
  })
  afterAll(() => mayfly.dispose())

  const wired: Wire[] = []
  afterEach(() => {
    for (const wire of wired.splice(0)) wire.close()
  })

  it.each([
    { what: 'nothing at all', send: '' },
    { what: 'a part of its headers', send: 'GET / HTTP/1.1\r\nHost: x\r\nX-Sl' },
    {
      what: 'a part of its body',
      send: `POST /v1/inboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{`,
    },
  ])('disconnects a client that sends $what', async ({ send }) => {
    const withKey = send.replace('Host: x\r\n', `Host: x\r\nAuthorization: Bearer ${mayfly.apiKey}\r\n`)
    const wire = await openWire(httpPort(mayfly))
    wire.write(withKey)
    await until('the end of the connection', () => wire.isClosed())
    wire.close()
    const [answer] = readAnswers(wire.received())
    if (answer === undefined) throw new Error('no answer')
    expectProblem(answer, { status: 400, code: 'invalid-request', detail: /in time/ })
  })

  it.each([APP, 'http://localhost:5173'])(
    'answers preflight requests of %s without a key',
    async (origin) => {
      const { status, headers } = await call(mayfly, 'OPTIONS', '/v1/inboxes/x/messages/y', preflight(origin))
      expect(status).toBe(204)
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      expect(headers.get('vary')).toBe('Origin')
      const allowed = (name: string) => headers.get(`access-control-allow-${name}`)?.toLowerCase().split(', ')
      const { body: document } = await call<Document>(mayfly, 'GET', '/openapi.json')
      const methods = new Set(Object.values(document.paths).flatMap((path) => Object.keys(path)))
      expect(allowed('methods')?.toSorted()).toEqual([...methods, 'head'].toSorted())
      expect(allowed('headers')).toEqual(
        expect.arrayContaining([
          'authorization',
          'content-type',
          'idempotency-key',
          'mayfly-inbox-password',
          'last-event-id',
        ]),
      )
      expect(headers.get('access-control-allow-credentials')).toBeNull()
    },
  )

  it('allows them to read answers and their headers', async () => {
    await createInbox(mayfly)
    const { status, headers } = await call(mayfly, 'POST', '/v1/inboxes', asPage(APP))
    expect(status).toBe(201)
    expect(headers.get('access-control-allow-origin')).toBe(APP)
    const exposed = headers.get('access-control-expose-headers')?.split(', ')
    const names = ['Mayfly-Cursor', 'Link', 'Location', 'Retry-After', 'X-Request-Id', 'RateLimit']
    expect(exposed).toEqual(expect.arrayContaining(names))
  })

  it.each([
    { path: '/v1/inboxes', key: '', status: 401 },
    { path: '/v1/inboxes?x=1', key: null, status: 400 },
    { path: '/v1/nothing', key: null, status: 404 },
    { path: '/v1/%zz', key: null, status: 400 },
  ])('allows them to read errors: $status at $path', async ({ path, key, status }) => {
    const headers = key === null ? {} : { authorization: key }
    const answer = await call(mayfly, 'GET', path, asPage(APP, headers))
    expect(answer.status).toBe(status)
    expect(answer.headers.get('access-control-allow-origin')).toBe(APP)
  })

  it.each(['https://app.example.org', 'http://app.example', 'https://APP.example', 'null', ''])(
    'refuses the origin %j',
    async (origin) => {
      const answers = [
        await call(mayfly, 'GET', '/v1/inboxes', asPage(origin)),
        await call(mayfly, 'OPTIONS', '/v1/inboxes', preflight(origin)),
      ]
      for (const { headers } of answers) {
        expect(corsHeaders(headers)).toEqual([])
        expect(headers.get('vary')).toBe('Origin')
      }
      expect(answers.map(({ status }) => status)).toEqual([200, 401])
    },
  )

  it('answers other OPTIONS requests with the allowed methods', async () => {
    const answer = await call(mayfly, 'OPTIONS', '/v1/inboxes', asPage(APP))
    expectProblem(answer, { status: 405, code: 'method-not-allowed' })
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
  })

  // The tests of the connection limit are last, because the next request may find its connection closed.
  /** Opens connections, has a request answered on each, and keeps them open. */
  const openIdle = async (count: number, localAddress: string): Promise<Wire[]> => {
    const wires: Wire[] = []
    for (let opened = 0; opened < count; opened += 1) {
      const wire = await openWire(httpPort(mayfly), localAddress)
      wire.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      wires.push(wire)
      wired.push(wire)
    }
    await until('answers or ends', () => wires.every((wire) => wire.isClosed() || wire.received() !== ''))
    return wires
  }
  const answered = (wires: Wire[]) => wires.filter((wire) => readAnswers(wire.received()).length === 1).length

  it('closes idle connections once more than three quarters are open', async () => {
    const wires = [
      ...(await openIdle(10, '127.0.0.2')),
      ...(await openIdle(5, '127.0.0.3')),
      ...(await openIdle(3, '127.0.0.4')),
    ]
    expect(answered(wires)).toBeGreaterThan((connections / 4) * 3)
    // The check runs once a second, so the last connections may be newer.
    await until('the end of most', () => wires.filter((wire) => wire.isClosed()).length > wires.length / 2)
  })

  it('closes connections over the limit, counts them, and prefers to close those of the address with the most', async () => {
    const hoarded = await Promise.all(
      Array.from({ length: connections + 5 }, () => openWire(httpPort(mayfly), '127.0.0.1')),
    )
    await until('connections to be closed', () => hoarded.filter((wire) => wire.isClosed()).length >= 5)
    expect(answered(await openIdle(3, '127.0.0.2'))).toBe(3)
    for (const wire of hoarded) wire.close()
    await until(
      'an answer',
      async () => (await call(mayfly, 'GET', '/healthz').catch(() => null))?.status === 200,
    )
    const { body } = await call<string>(mayfly, 'GET', '/metrics')
    const dropped = Number(/^mayfly_http_dropped_connections_total (\d+)$/m.exec(body)?.[1])
    expect(dropped).toBeGreaterThanOrEqual(5)
  })

  it('ends waits of the address with the most connections for a request of another address', async () => {
    const { id } = await createInbox(mayfly)
    const path = `/v1/inboxes/${id}/messages/wait?timeout=55`
    const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${mayfly.apiKey}\r\n\r\n`
    // Idle connections of this test may be closed meanwhile.
    await until('all connections to be taken', async () => {
      const wire = await openWire(httpPort(mayfly), '127.0.0.3')
      wire.write(head)
      wired.push(wire)
      await pause(50)
      return wired.filter((each) => !each.isClosed()).length === connections
    })
    await until('an answer', async () => answered(await openIdle(1, '127.0.0.2')) === 1)
  })
})

type Line = Record<string, unknown>

async function lineOf(mayfly: Mayfly, id: string): Promise<Line> {
  const lines = await until(`the line of ${id}`, () => {
    const found = linesOf(mayfly).filter((line) => Object.values(line).includes(id))
    return found.length > 0 && found
  })
  expect(lines).toHaveLength(1)
  return lines[0] ?? {}
}

/** The complete log lines so far. */
function linesOf(mayfly: Mayfly): Line[] {
  const whole = mayfly.output().stderr.split('\n').slice(0, -1)
  return whole.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as Line)
}

/** The number of requests with this status in the metrics. */
async function countOf(mayfly: Mayfly, status: number): Promise<number> {
  const { body } = await call<string>(mayfly, 'GET', '/metrics')
  const counts = body.matchAll(
    new RegExp(`^mayfly_http_request_seconds_count\\{.*status="${status}".*\\} (\\d+)$`, 'gm'),
  )
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}
