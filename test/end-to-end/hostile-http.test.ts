import { randomUUID } from 'node:crypto'
import { call, createInbox, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { expectProblem, type ExpectedProblem } from '#test/harness/problem.js'
import { until } from '#test/harness/until.js'
import { httpPort, openWire, readAnswers, speakHttp } from '#test/harness/wire.js'

const KEY = 'a-key-for-the-end-to-end-suites'
const AUTHORIZED = `Host: x\r\nAuthorization: Bearer ${KEY}\r\n`
const JSON_BODY = `${AUTHORIZED}Content-Type: application/json\r\n`
const UPGRADE = 'Connection: upgrade\r\nUpgrade: websocket\r\n'
const broken = { status: 400, code: 'invalid-request' }

const BROKEN: { name: string; send: string; expect: ExpectedProblem; allow?: string }[] = [
  { name: 'no HTTP', send: 'hello\r\n\r\n', expect: broken },
  { name: 'TLS', send: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', expect: broken },
  { name: 'HTTP/2', send: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', expect: broken },
  { name: 'an unknown method', send: 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n', expect: broken },
  { name: 'line feeds alone', send: 'GET /healthz HTTP/1.1\nHost: x\n\n', expect: broken },
  { name: 'no Host', send: 'GET /healthz HTTP/1.1\r\n\r\n', expect: { ...broken, at: [{ header: 'Host' }] } },
  {
    name: 'two Hosts',
    send: 'GET /v1/inboxes HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n',
    expect: { ...broken, at: [{ header: 'Host' }] },
  },
  { name: 'a NUL in the path', send: 'GET /v1/inboxes/\0 HTTP/1.1\r\nHost: x\r\n\r\n', expect: broken },
  { name: 'a NUL in a header', send: 'GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n', expect: broken },
  { name: 'a blank in a header name', send: 'GET / HTTP/1.1\r\nHost: x\r\nX y: 1\r\n\r\n', expect: broken },
  {
    name: 'many headers',
    send: `GET / HTTP/1.1\r\nHost: x\r\n${'X: y\r\n'.repeat(20_000)}\r\n`,
    expect: broken,
  },
  {
    name: 'a large header',
    send: `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(200_000)}\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'a very long path',
    send: `GET /${'a'.repeat(200_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'two lengths',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    expect: broken,
  },
  {
    name: 'a length and chunks',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'a negative length',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: -1\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'a length with a sign',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: +2\r\n\r\n{}`,
    expect: broken,
  },
  {
    name: 'two lengths in one',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 2, 2\r\n\r\n{}`,
    expect: broken,
  },
  {
    name: 'chunks and a length',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'chunks that are not the last coding',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'chunks of what is coded otherwise',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    expect: { ...broken, at: [{ header: 'Transfer-Encoding' }] },
  },
  {
    name: 'chunks in HTTP/1.0',
    send: `POST /v1/inboxes HTTP/1.0\r\n${JSON_BODY}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    expect: { ...broken, at: [{ header: 'Transfer-Encoding' }] },
  },
  {
    name: 'a blank before a colon',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'a folded header',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding:\r\n chunked\r\nX: y\r\n\r\n0\r\n\r\n`,
    expect: broken,
  },
  {
    name: 'a bad chunk',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    expect: broken,
  },
  {
    name: 'a body in more chunks than any client sends',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(20_000)}`,
    expect: { status: 413, code: 'body-too-large' },
  },
  { name: 'a tunnel', send: 'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n', expect: broken },
  {
    name: 'a length past the limit',
    send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 99999999999\r\n\r\n{`,
    expect: { status: 413, code: 'body-too-large' },
  },
  {
    name: 'TRACE',
    send: 'TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
    expect: { status: 405, code: 'method-not-allowed' },
    allow: 'GET, HEAD',
  },
  {
    name: 'PROPFIND',
    send: `PROPFIND /v1/inboxes HTTP/1.1\r\n${AUTHORIZED}\r\n`,
    expect: { status: 405, code: 'method-not-allowed' },
    allow: 'GET, HEAD, POST',
  },
  {
    name: 'QUERY',
    send: `QUERY /v1/inboxes HTTP/1.1\r\n${AUTHORIZED}\r\n`,
    expect: { status: 405, code: 'method-not-allowed' },
    allow: 'GET, HEAD, POST',
  },
  {
    name: 'OPTIONS *',
    send: 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n',
    expect: { status: 405, code: 'method-not-allowed' },
    allow: 'GET, HEAD',
  },
  {
    name: 'a path with two slashes',
    send: `GET //v1/inboxes HTTP/1.1\r\n${AUTHORIZED}\r\n`,
    expect: { status: 404, code: 'not-found' },
  },
  {
    name: 'a path with dots',
    send: `GET /v1/../healthz HTTP/1.1\r\n${AUTHORIZED}\r\n`,
    expect: { status: 404, code: 'not-found' },
  },
  {
    name: 'a path under another name',
    send: 'GET /%76%31/inboxes HTTP/1.1\r\nHost: x\r\n\r\n',
    expect: { status: 401, code: 'missing-api-key' },
  },
]

describe('hostile HTTP', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly({ isOneProcess: true, apiKey: KEY })
  })
  afterAll(() => mayfly.dispose())
  afterEach(async () => {
    const [answer] = await speakHttp(mayfly, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(answer?.status).toBe(200)
  })

  it.each(BROKEN)('is answered as a problem: $name', async ({ send, expect: expected, allow }) => {
    const [answer] = await speakHttp(mayfly, Buffer.from(send, 'latin1'))
    if (answer === undefined) throw new Error('no answer')
    expectProblem(answer, expected)
    if (allow !== undefined) expect(answer.headers.get('allow')).toBe(allow)
  })

  it.each([
    { name: 'HTTP/1.0 without a Host', send: 'GET /healthz HTTP/1.0\r\n\r\n', status: 200 },
    {
      name: 'a target in absolute form',
      send: 'GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n',
      status: 200,
    },
    { name: 'a query of nothing', send: `GET /v1/inboxes?&& HTTP/1.1\r\n${AUTHORIZED}\r\n`, status: 200 },
    {
      name: 'an upgrade that is not offered',
      send: `GET /healthz HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`,
      status: 200,
    },
    {
      name: 'an unknown expectation',
      send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Expect: wonders\r\nContent-Length: 2\r\n\r\n{}`,
      status: 201,
    },
    {
      name: '100-continue',
      send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
      status: 201,
    },
    {
      name: 'a body in chunks',
      send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`,
      status: 201,
    },
    {
      name: 'no body in chunks',
      send: `POST /v1/inboxes HTTP/1.1\r\n${AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      status: 201,
    },
    {
      name: 'a POST with neither body nor length',
      send: `POST /v1/inboxes HTTP/1.1\r\n${AUTHORIZED}\r\n`,
      status: 201,
    },
  ])('is answered normally if it is only unusual: $name', async ({ send, status }) => {
    const [answer] = await speakHttp(mayfly, send)
    expect(answer?.status).toBe(status)
  })

  it('answers pipelined requests, each once and in order', async () => {
    const { id } = await createInbox(mayfly)
    const get = (path: string) => `GET ${path} HTTP/1.1\r\n${AUTHORIZED}\r\n`
    const paths = [
      `/v1/inboxes/${id}`,
      '/nothing',
      '/healthz',
      `/v1/inboxes/${id}/messages`,
      '/v1/inboxes?x=1',
    ]
    const answers = await speakHttp(mayfly, paths.map(get).join(''), { answers: paths.length })
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 200, 400])
  })

  it('answers hundreds of pipelined requests, more than it processes concurrently', async () => {
    const answers = await speakHttp(mayfly, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500), {
      answers: 500,
    })
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  it('answers others while a connection pipelines thousands of requests', async () => {
    const wire = await openWire(httpPort(mayfly))
    wire.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(5_000))
    expect((await createInbox(mayfly)).state).toBe('active')
    await until('more answers than it works on at once', () => readAnswers(wire.received()).length > 200)
    expect(wire.isClosed()).toBe(false)
    wire.close()
  })

  it('reads a body of a thousand chunks', async () => {
    const name = 'x'.repeat(100)
    const text = JSON.stringify({ name }).padEnd(1_000)
    const chunks = text.replaceAll(/./g, '1\r\n$&\r\n')
    const [answer] = await speakHttp(
      mayfly,
      `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    )
    expect(answer?.status).toBe(201)
    expect(JSON.parse(answer?.body ?? '')).toMatchObject({ name })
  })

  it('closes the connection of a refused request whose body has very many chunks', async () => {
    const wire = await openWire(httpPort(mayfly))
    try {
      wire.write('POST /v1/inboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
      wire.write('1\r\n \r\n'.repeat(4_000))
      await until('an answer', () => /^HTTP\/1.1 401 /.test(wire.received()))
      expect(wire.isClosed()).toBe(false)
      wire.write('1\r\n \r\n'.repeat(1_000))
      await until('the connection to be closed', () => wire.isClosed())
    } finally {
      wire.close()
    }
  })

  it('reads requests that arrive byte by byte', async () => {
    const wire = await openWire(httpPort(mayfly))
    for (const byte of `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 2\r\n\r\n{}`) {
      wire.write(byte)
      await new Promise(setImmediate)
    }
    await until('the answer', () => readAnswers(wire.received())[0]?.status === 201)
    wire.close()
  })

  it.each([
    {
      name: 'a body whose end others may see elsewhere',
      send: `POST /v1/inboxes HTTP/1.0\r\n${JSON_BODY}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      status: 400,
    },
    {
      name: 'a request for an upgrade',
      send: `GET /v1/inboxes HTTP/1.1\r\n${AUTHORIZED}${UPGRADE}\r\n`,
      status: 200,
    },
    {
      name: 'a request for an upgrade with a body',
      send: `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}${UPGRADE}Content-Length: 2\r\n\r\n{}`,
      status: 201,
    },
    {
      name: 'a request for an upgrade whose path is unreadable',
      send: `GET /v1/%zz HTTP/1.1\r\n${AUTHORIZED}${UPGRADE}\r\n`,
      status: 400,
    },
  ])('runs no request after $name, and closes the connection', async ({ send, status }) => {
    const run = randomUUID()
    const body = JSON.stringify({ labels: { run } })
    const create = `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: ${body.length}\r\n\r\n${body}`
    const wire = await openWire(httpPort(mayfly))
    wire.write(`${send}${create}`)
    wire.write(create)
    await until('the end of the connection', () => wire.isClosed())
    wire.close()
    const answers = readAnswers(wire.received())
    expect(answers.map((answer) => answer.status)).toEqual([status])
    expect(answers[0]?.headers.get('connection')).toBe('close')
    const { body: made } = await call<InboxJson[]>(mayfly, 'GET', `/v1/inboxes?label=run:${run}`)
    expect(made).toEqual([])
  })

  it('answers requests before an upgrade request', async () => {
    const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\n${AUTHORIZED}${headers}\r\n`
    const ahead = Array.from({ length: 40 }, () => get('/healthz'))
    const answers = await speakHttp(mayfly, [...ahead, get('/nothing', UPGRADE)].join(''), { answers: 41 })
    expect(answers.map(({ status }) => status)).toEqual([...ahead.map(() => 200), 404])
  })

  it('answers a client that has closed its sending side', async () => {
    const { id } = await createInbox(mayfly)
    for (const path of ['/v1/inboxes?limit=1', `/v1/inboxes/${id}/messages`]) {
      const request = `GET ${path} HTTP/1.1\r\n${AUTHORIZED}\r\n`
      const [answer] = await speakHttp(mayfly, request, { ends: true })
      expect(answer?.status).toBe(200)
    }
  })

  it('reads a body that arrives one byte at a time', async () => {
    const body = '{"name":"slow"}'
    const wire = await openWire(httpPort(mayfly))
    wire.write(`POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: ${body.length}\r\n\r\n`)
    for (const byte of body) {
      wire.write(byte)
      await new Promise(setImmediate)
    }
    const answer = await until('the answer', () => readAnswers(wire.received())[0])
    wire.close()
    expect(answer.status).toBe(201)
    expect(JSON.parse(answer.body)).toMatchObject({ name: 'slow' })
  })

  it('reads a body of empty lines', async () => {
    const body = `{${'\r\n\r\n'.repeat(50_000)}"name":"empty lines"}`
    const answer = await call<InboxJson>(mayfly, 'POST', '/v1/inboxes', {
      body: Buffer.from(body),
      headers: { 'content-type': 'application/json' },
    })
    expect(answer).toMatchObject({ status: 201, body: { name: 'empty lines' } })
  })

  it('is not delayed by clients that stop sending', async () => {
    const beginnings = [
      '',
      'G',
      'GET /v1/inb',
      'GET / HTTP/1.1\r\nHost: x\r\nX-Sl',
      `POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 9\r\n\r\n{`,
    ]
    const wires = await Promise.all(Array.from({ length: 100 }, () => openWire(httpPort(mayfly))))
    for (const [index, wire] of wires.entries()) wire.write(beginnings[index % beginnings.length] ?? '')
    expect((await createInbox(mayfly)).state).toBe('active')
    for (const wire of wires) wire.close()
  })

  it('survives clients that disconnect before their answer', async () => {
    for (let left = 0; left < 50; left += 1) {
      const wire = await openWire(httpPort(mayfly))
      wire.write(`POST /v1/inboxes HTTP/1.1\r\n${JSON_BODY}Content-Length: 2\r\n\r\n{}`)
      wire.close()
    }
    expect((await createInbox(mayfly)).state).toBe('active')
    expect(mayfly.output().stderr).not.toContain('a request failed')
  })
})
