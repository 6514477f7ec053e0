import { Webhook } from 'standardwebhooks'
import { startEndpoint, startTcpEndpoint, type Endpoint, startRawEndpoint } from '#test/harness/endpoint.js'
import { attempt, openSender, post, SECRET } from '#test/harness/sender.js'
import { until } from '#test/harness/until.js'
import type { WebhookSender } from './webhook-sender.js'

const endpoints: Endpoint[] = []
let sender: WebhookSender

/** Disposes of the endpoint after the test. */
async function here<Started extends Endpoint>(starting: Promise<Started>): Promise<Started> {
  const endpoint = await starting
  endpoints.push(endpoint)
  return endpoint
}

beforeEach(() => {
  sender = openSender()
})
afterEach(async () => {
  await sender.close()
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.dispose()))
})

describe('a webhook request', () => {
  it('is a signed POST of JSON with the time of the attempt', async () => {
    const endpoint = await here(startEndpoint())
    const body = JSON.stringify({ type: 'message.received', data: { subject: 'Grüße 😀' } })
    const before = Math.floor(Date.now() / 1_000)
    const outcome = await sender.post(
      post(`${endpoint.url}?run=42`, { id: 'dlv_42', body: Buffer.from(body) }),
    )
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, retryAfterMs: null })
    const [request] = endpoint.requests
    expect(request).toMatchObject({ method: 'POST', url: '/hook?run=42', body })
    const headers = request?.headers ?? {}
    expect(headers).toEqual({
      host: `127.0.0.1:${endpoint.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'Mayfly-Webhooks/1',
      'webhook-id': 'dlv_42',
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/) as string,
      'webhook-signature': expect.stringMatching(/^v1,/) as string,
    })
    expect(Number(headers['webhook-timestamp'])).toBeGreaterThanOrEqual(before)
    const webhook = new Webhook(SECRET, { format: 'raw' })
    expect(webhook.verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body))
  })

  it.each([
    { status: 204, headers: {}, retryAfterMs: null },
    { status: 410, headers: {}, retryAfterMs: null },
    { status: 429, headers: { 'retry-after': '120' }, retryAfterMs: 120_000 },
    { status: 500, headers: { 'retry-after': '99999999' }, retryAfterMs: 86_400_000 },
    { status: 503, headers: { 'retry-after': 'Fri, 31 Dec 2199 23:59:59 GMT' }, retryAfterMs: 86_400_000 },
    { status: 503, headers: { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }, retryAfterMs: 0 },
    { status: 500, headers: { 'retry-after': 'soon' }, retryAfterMs: null },
  ])(
    'reports the status $status and the headers $headers of the response',
    async ({ status, headers, retryAfterMs }) => {
      const endpoint = await here(startEndpoint((response) => response.writeHead(status, headers).end()))
      expect(await sender.post(post(endpoint.url))).toMatchObject({ kind: 'answered', status, retryAfterMs })
    },
  )

  it.each([300, 301, 302, 303, 304, 307, 308])(
    'does not follow a redirect with status %i',
    async (status) => {
      const elsewhere = await here(startEndpoint())
      const endpoint = await here(
        startEndpoint((response) => response.writeHead(status, { location: elsewhere.url }).end()),
      )
      expect(await sender.post(post(endpoint.url))).toMatchObject({
        kind: 'failed',
        reason: 'redirect',
        status,
      })
      expect(elsewhere.connections.opened).toBe(0)
    },
  )

  it('keeps the first kilobyte of the response, still encoded', async () => {
    const content = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 251))
    const endpoint = await here(
      startEndpoint((response) => response.setHeader('content-encoding', 'gzip').end(content)),
    )
    const outcome = await sender.post(post(endpoint.url))
    expect(outcome).toMatchObject({ kind: 'answered', answer: content.subarray(0, 1_024) })
  })

  it.each([
    ['HTTP/1.0 200 OK\r\n\r\nold', 'old'],
    [
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew',
      'new',
    ],
    [
      'HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nin\r\n4\r\n two\r\n0\r\ntrailer: x\r\n\r\n',
      'in two',
    ],
  ])('accepts the response %j', async (said, content) => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.once('data', () => socket.end(said))))
    const outcome = await sender.post(post(endpoint.url))
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, answer: Buffer.from(content) })
  })

  it('reuses a connection', async () => {
    const endpoint = await here(startEndpoint((response) => response.setHeader('set-cookie', 'a=b').end()))
    for (let times = 0; times < 5; times += 1) await sender.post(post(endpoint.url))
    // A connection may not be free yet when its outcome is reported.
    expect(endpoint.connections.opened).toBeLessThanOrEqual(2)
    expect(endpoint.requests).toHaveLength(5)
    for (const { headers } of endpoint.requests) expect(headers).not.toHaveProperty('cookie')
  })

  it('is sent again at once if a reused connection was closed', async () => {
    let hasEnded = false
    const endpoint = await here(
      startTcpEndpoint((socket) => {
        let requests = 0
        socket.on('data', () => {
          requests += 1
          if (!hasEnded && requests > 1) {
            hasEnded = true
            socket.destroy()
          } else socket.write('HTTP/1.1 204 No Content\r\n\r\n')
        })
      }),
    )
    for (let times = 0; times < 10; times += 1) {
      expect(await sender.post(post(endpoint.url))).toMatchObject({ kind: 'answered', status: 204 })
    }
    expect(hasEnded).toBe(true)
  })

  it('closes a connection after its idle timeout', async () => {
    const endpoint = await here(
      startEndpoint((response) => response.setHeader('keep-alive', 'timeout=600').end()),
    )
    const brief = openSender({ bounds: { idleMs: 20 } })
    await brief.post(post(endpoint.url))
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
    await brief.close()
  })

  it('does not wait for other attempts that hang at the same origin', async () => {
    const held: (() => void)[] = []
    const endpoint = await here(startEndpoint((response) => held.push(() => response.end())))
    const own = openSender()
    const posts = Array.from({ length: 150 }, () => own.post(post(endpoint.url)))
    await until('all requests', () => held.length === posts.length)
    for (const answer of held) answer()
    for (const outcome of await Promise.all(posts)) expect(outcome).toMatchObject({ status: 200 })
    await own.close()
  })

  it('does not wait for attempts that hang at another origin', async () => {
    const hanging = await here(startRawEndpoint())
    const good = await here(startEndpoint())
    const brief = openSender({ timeoutMs: 5_000 })
    const stuck = Array.from({ length: 50 }, () => brief.post(post(hanging.url)))
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => brief.post(post(good.url))))
    expect(outcomes.filter(({ kind }) => kind === 'answered')).toHaveLength(50)
    for (const outcome of await Promise.all(stuck)) expect(outcome).toMatchObject({ reason: 'timeout' })
    await brief.close()
  })

  it("keeps a connection when another owner's connection to the same origin fails", async () => {
    const endpoint = await here(
      startEndpoint((response, { url }) => (url === '/fail' ? response.destroy() : response.end())),
    )
    const own = openSender()
    await own.post(post(endpoint.url, { owner: 'a' }))
    await own.post(post(new URL('/fail', endpoint.url).href, { owner: 'b' }))
    await own.post(post(endpoint.url, { owner: 'a' }))
    expect(endpoint.connections.opened).toBe(2)
    await own.close()
  })

  it('keeps connections to a bounded number of origins', async () => {
    const both = [await here(startEndpoint()), await here(startEndpoint())] as const
    const narrow = openSender({ bounds: { origins: 1 } })
    for (const { url } of both) await narrow.post(post(url))
    await until('the first to be closed', () => both[0].connections.open.size === 0)
    expect(both[1].connections.open.size).toBe(1)
    await narrow.close()
  })
})

describe('closing a sender', () => {
  it('waits for attempts in progress, then closes every connection', async () => {
    const held = Promise.withResolvers<() => void>()
    const endpoint = await here(startEndpoint((response) => held.resolve(() => response.end())))
    const closing = openSender()
    const outcome = closing.post(post(endpoint.url))
    const answer = await held.promise
    const closed = closing.close()
    await expect(closing.post(post(endpoint.url))).rejects.toThrow('closed')
    answer()
    expect(await outcome).toMatchObject({ kind: 'answered' })
    await closed
    await until('no connection', () => endpoint.connections.open.size === 0)
  })

  it('closes connections that are still opening after their attempt timed out', async () => {
    const endpoint = await here(startTcpEndpoint((socket) => socket.resume(), { scheme: 'https' }))
    const bounds = { tlsMs: 60_000 }
    expect(await attempt(endpoint.url, { timeoutMs: 50, bounds })).toMatchObject({ reason: 'timeout' })
    await until('no connection', () => endpoint.connections.open.size === 0)
  })
})

it('a webhook without a secret is not sent', async () => {
  const endpoint = await here(startEndpoint())
  await expect(sender.post(post(endpoint.url, { secrets: [] }))).rejects.toThrow('no secret')
  expect(endpoint.connections.opened).toBe(0)
})
