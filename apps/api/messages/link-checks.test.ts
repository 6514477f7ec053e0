import { mintId } from '#libs/domain/ids/mint.js'
import { startDns } from '#test/harness/dns.js'
import {
  endpointsPerTest,
  startEndpoint,
  startRawEndpoint,
  startTcpEndpoint,
} from '#test/harness/endpoint.js'
import { until } from '#test/harness/until.js'
import { LinkChecks, MAX_LINKS, type LinkChecksOptions } from './link-checks.js'

/** The tests can reach this machine only, so they treat one loopback address as public. */
const PUBLIC = '127.0.0.2'
const policy = { isAddressAllowed: (address: string) => address === PUBLIC, isPortAllowed: () => true }
const NOT_PUBLIC = 'the host has no public address'
const LATE = 'the response did not arrive in time'
/** Longer than any test. */
const HOURS_MS = 10_000_000

const accountId = mintId('acc')
const endpoints = endpointsPerTest()

async function checked(
  hrefs: readonly string[],
  options: Partial<LinkChecksOptions> = {},
  clientGone = new AbortController().signal,
) {
  const onExhausted = () => undefined
  const checks = new LinkChecks({ allowPrivate: true, ports: [], dnsServers: null, onExhausted, ...options })
  try {
    const links = await checks.check(accountId, hrefs, clientGone)
    return links.map(({ status, error }) => error ?? status)
  } finally {
    checks.close()
  }
}

describe('a check of links', () => {
  it.each([
    ['with HEAD', 200, ['HEAD']],
    ['with HEAD only, if that finds nothing', 404, ['HEAD']],
    ['with GET, if HEAD is forbidden', 403, ['HEAD', 'GET']],
    ['with GET, if HEAD is not allowed', 405, ['HEAD', 'GET']],
    ['with GET, if HEAD is not implemented', 501, ['HEAD', 'GET']],
  ])('requests %s', async (_, ofHead, methods) => {
    const { url, requests, connections } = await endpoints.start((response, { method }) => {
      response.statusCode = method === 'HEAD' ? ofHead : 299
      response.end()
    })
    expect(await checked([`${url}?a=b#c`])).toEqual([methods.length === 1 ? ofHead : 299])
    expect(requests.map(({ method, url: path }) => `${method} ${path}`)).toEqual(
      methods.map((method) => `${method} /hook?a=b`),
    )
    expect(requests[0]?.headers).not.toHaveProperty('authorization')
    await until('the connections to be closed', () => connections.open.size === 0)
  })

  it('does not read content', async () => {
    const { url, connections } = await endpoints.start((response, { method }) => {
      if (method === 'HEAD') response.writeHead(405).end()
      // The content never ends.
      else response.writeHead(200).write('begun')
    })
    expect(await checked([url], { bounds: { linkMs: HOURS_MS, checkMs: HOURS_MS } })).toEqual([200])
    await until('the connections to be closed', () => connections.open.size === 0)
  })

  it('follows redirects, at most five', async () => {
    const { url } = await endpoints.start((response, { url: path }) => {
      const left = Number(path.split('/').at(-1))
      if (left > 0) response.writeHead(302, { location: `../to/${left - 1}` })
      else response.writeHead(204)
      response.end()
    })
    expect(await checked([`${url}/5`, `${url}/6`])).toEqual([204, 'more than 5 redirects'])
  })

  it.each([
    [undefined, 302],
    ['http://[', 'the redirect has no valid URL'],
    ['app://open', /^after a redirect: it must be an http or https URL/],
    ['http://user:password@127.0.0.2/', /^after a redirect: it must not contain a user name/],
    ['http://127.0.0.1/', `after a redirect: ${NOT_PUBLIC}`],
    ['http://0x7f.1/', `after a redirect: ${NOT_PUBLIC}`],
    ['http://localhost/', `after a redirect: ${NOT_PUBLIC}`],
    ['http://[::ffff:10.0.0.1]/', `after a redirect: ${NOT_PUBLIC}`],
    ['http://169.254.169.254/latest/meta-data/', `after a redirect: ${NOT_PUBLIC}`],
    ['http://private.example/', `after a redirect: ${NOT_PUBLIC}`],
  ])('does not follow a redirect to %s', async (location, result) => {
    const dns = await startDns({ 'private.example': { A: ['10.0.0.1'], AAAA: ['fd00::1'] } })
    try {
      const { url } = await endpoints.start(
        (response) => response.writeHead(302, location === undefined ? {} : { location }).end(),
        { host: PUBLIC },
      )
      const options = { allowPrivate: false, policy, dnsServers: [dns.address] }
      const [found] = await checked([url], options)
      if (result instanceof RegExp) expect(found).toMatch(result)
      else expect(found).toEqual(result)
    } finally {
      dns.dispose()
    }
  })

  it('requests only addresses and ports that webhooks may be sent to', async () => {
    const endpoint = await endpoints.start()
    const hrefs = [endpoint.url, 'http://10.0.0.1/', 'https://[::1]/', 'http://192.0.2.1:25/']
    const ports = [{ first: 80, last: 80 }]
    const refused = await checked(hrefs.slice(1), { allowPrivate: false, ports })
    expect(refused).toEqual([NOT_PUBLIC, 'port 443 is not allowed', 'port 25 is not allowed'])
    const all = [{ first: 1, last: 65_535 }]
    expect(await checked(hrefs.slice(0, 3), { allowPrivate: false, ports: all })).toEqual([
      NOT_PUBLIC,
      NOT_PUBLIC,
      NOT_PUBLIC,
    ])
    expect(endpoint.connections.opened).toBe(0)
  })

  it.each([
    ['nothing', '', LATE],
    ['half of its headers', 'HTTP/1.1 200 OK\r\nx: ', LATE],
    ['something else', 'SSH-2.0-OpenSSH\r\n\r\n', 'the response is not HTTP/1.1'],
    ['an invalid status', 'HTTP/1.1 999 X\r\n\r\n', 'the response has an invalid status'],
    [
      'too many headers',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
      'the response headers are too large',
    ],
    ['an early hint, then its answer', 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 200],
    ['content after HEAD', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello, and more', 200],
  ])('reports a server that sends %s', async (_, bytes, result) => {
    const endpoint = await startRawEndpoint(bytes)
    endpoints.add(endpoint)
    expect(await checked([endpoint.url], { bounds: { linkMs: result === LATE ? 300 : 20_000 } })).toEqual([
      result,
    ])
    await until('the connection to be closed', () => endpoint.connections.open.size === 0)
  })

  it('reports a server that sends interim answers without end', async () => {
    const hints = Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000))
    const endpoint = await startTcpEndpoint((socket) => {
      const flood = () => {
        while (!socket.destroyed && socket.write(hints));
      }
      socket.once('data', flood).on('drain', flood)
    })
    endpoints.add(endpoint)
    const bounds = { linkMs: HOURS_MS, checkMs: HOURS_MS }
    expect(await checked([endpoint.url], { bounds })).toEqual([
      'the response is too large outside its content',
    ])
  })

  it('reports hosts that it can’t connect to', async () => {
    const silent = await startTcpEndpoint((socket) => socket.resume(), { scheme: 'https' })
    const closed = await startEndpoint()
    await closed.dispose()
    endpoints.add(silent)
    const bounds = { linkMs: 300 }
    expect(await checked([silent.url, closed.url], { bounds })).toEqual([LATE, 'the connection was refused'])
    await until('the connection to be closed', () => silent.connections.open.size === 0)
  })

  it('requests each of the first links once, a few at a time', async () => {
    let open = 0
    let most = 0
    const { url, requests } = await endpoints.start((response) => {
      open += 1
      most = Math.max(most, open)
      setImmediate(() => {
        open -= 1
        response.end()
      })
    })
    const hrefs = Array.from({ length: MAX_LINKS + 2 }, (_, n) => `${url}/${n}`)
    const results = await checked(hrefs)
    expect(results.slice(0, MAX_LINKS)).toEqual(Array.from({ length: MAX_LINKS }, () => 200))
    expect(results.slice(MAX_LINKS)).toEqual([1, 2].map(() => 'only the first 100 links are requested'))
    expect(new Set(requests.map(({ url: path }) => path)).size).toBe(MAX_LINKS)
    expect(requests).toHaveLength(MAX_LINKS)
    expect(most).toBeLessThanOrEqual(4)
  })

  it('ends in time', async () => {
    const endpoint = await endpoints.start(() => undefined)
    const hrefs = Array.from({ length: 6 }, (_, n) => `${endpoint.url}/${n}`)
    const results = await checked(hrefs, { bounds: { linkMs: HOURS_MS, checkMs: 500 } })
    const none = 'there was no time left to request it'
    expect(results).toEqual([LATE, LATE, LATE, LATE, none, none])
    await until('the connections to be closed', () => endpoint.connections.open.size === 0)
  })

  it('ends when its client leaves', async () => {
    const endpoint = await endpoints.start(() => undefined)
    const leaving = new AbortController()
    const checking = checked(
      [endpoint.url, endpoint.url],
      { bounds: { linkMs: HOURS_MS, checkMs: HOURS_MS } },
      leaving.signal,
    )
    const refused = expect(checking).rejects.toThrow('left')
    await until('a request', () => endpoint.requests.length > 0)
    leaving.abort(new Error('left'))
    await refused
    await until('the connections to be closed', () => endpoint.connections.open.size === 0)
  })

  it('ends when the server shuts down', async () => {
    const endpoint = await endpoints.start(() => undefined)
    const options = { allowPrivate: true, ports: [], dnsServers: null, onExhausted: () => undefined }
    const checks = new LinkChecks(options)
    const checking = checks.check(accountId, [endpoint.url], new AbortController().signal)
    const refused = expect(checking).rejects.toMatchObject({ code: 'shutting-down' })
    await until('a request', () => endpoint.requests.length > 0)
    checks.close()
    await refused
  })

  it('does not wait for slow links of other accounts', async () => {
    const slow = await endpoints.start(() => undefined)
    const quick = await endpoints.start()
    const bounds = { linkMs: HOURS_MS, checkMs: HOURS_MS }
    const options = { allowPrivate: true, ports: [], dnsServers: null, onExhausted: () => undefined, bounds }
    const checks = new LinkChecks(options)
    const { signal } = new AbortController()
    const hrefs = Array.from({ length: 50 }, (_, n) => `${slow.url}/${n}`)
    const flood = Array.from({ length: 20 }, () =>
      checks.check(accountId, hrefs, signal).catch(() => undefined),
    )
    await until('the slots of the account to be taken', () => slow.requests.length === 4)
    const [link] = await checks.check(mintId('acc'), [quick.url], signal)
    expect(link).toMatchObject({ status: 200 })
    expect(slow.requests).toHaveLength(4)
    checks.close()
    await Promise.all(flood)
  })
})
