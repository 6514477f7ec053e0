import { freePort } from '#infra/servers/ports.js'
import { startDns, type DnsServer, type NameRecords } from '#test/harness/dns.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { attempt, openSender, post } from '#test/harness/sender.js'
import { policyOf } from '#libs/runtime/outbound/destination.js'
import type { WebhookSenderOptions } from './webhook-sender.js'

/** The tests can reach this machine only, so they treat one loopback address as public. */
const PUBLIC = '127.0.0.2'
const PRIVATE = '127.0.0.1'
const policy = { isAddressAllowed: (address: string) => address === PUBLIC, isPortAllowed: () => true }

let dns: DnsServer
let port: number
let publicEndpoint: HttpEndpoint
let privateEndpoint: HttpEndpoint

beforeEach(async () => {
  dns = await startDns({})
  port = await freePort()
  privateEndpoint = await startEndpoint(undefined, { host: PRIVATE, port })
  publicEndpoint = await startEndpoint(undefined, { host: PUBLIC, port })
})
afterEach(async () => {
  dns.dispose()
  await Promise.all([publicEndpoint.dispose(), privateEndpoint.dispose()])
})

const options = (): Partial<WebhookSenderOptions> => ({
  allowPrivate: false,
  policy,
  dnsServers: [dns.address],
  bounds: { dnsCacheMs: 0, idleMs: 1 },
})

function attemptAt(records: NameRecords, name = 'app.example') {
  dns.zone = { [name]: records }
  return attempt(`http://${name}:${port}/`, options())
}

/** Records that change with each query. */
function inSequence(...answers: readonly (readonly string[])[]): () => readonly string[] {
  let queries = 0
  return () => answers[Math.min(queries++, answers.length - 1)] ?? []
}

const REFUSED = {
  kind: 'failed',
  reason: 'refused-address',
  detail: 'the host has no public address',
}

describe('a host name', () => {
  it('is resolved by DNS', async () => {
    expect(await attemptAt({ A: [PUBLIC] })).toMatchObject({ kind: 'answered', status: 200 })
    expect(publicEndpoint.requests[0]?.headers.host).toBe(`app.example:${port}`)
  })

  it.each([
    { A: [PRIVATE] },
    { A: ['10.0.0.1', '169.254.169.254'] },
    { AAAA: ['::1'] },
    { AAAA: ['::ffff:127.0.0.2'] },
    { A: ['127.0.0.3'], AAAA: ['fe80::1', '64:ff9b::7f00:2'] },
  ])('that resolves to $A $AAAA is refused before a connection is opened', async (records) => {
    expect(await attemptAt(records)).toMatchObject(REFUSED)
    expect(publicEndpoint.connections.opened + privateEndpoint.connections.opened).toBe(0)
  })

  it('with private and public addresses is connected to at the public ones only', async () => {
    const records = { A: [PRIVATE, PUBLIC, '10.0.0.1'], AAAA: ['::1'] }
    expect(await attemptAt(records)).toMatchObject({ kind: 'answered' })
    expect([publicEndpoint.connections.opened, privateEndpoint.connections.opened]).toEqual([1, 0])
  })

  it('is resolved once: the checked address is the one connected to', async () => {
    const A = inSequence([PUBLIC], [PRIVATE])
    expect(await attemptAt({ A })).toMatchObject({ kind: 'answered' })
    expect(dns.queries.toSorted()).toEqual(['A app.example', 'AAAA app.example'])
    expect([publicEndpoint.connections.opened, privateEndpoint.connections.opened]).toEqual([1, 0])
  })

  it('is checked again when it resolves to another address', async () => {
    dns.zone = { 'app.example': { A: inSequence([PUBLIC], [PRIVATE]) } }
    const sender = openSender(options())
    // Posts until one opens a new connection, and so looks the name up again.
    const outcomes = [await sender.post(post(`http://app.example:${port}/`))]
    while (outcomes.at(-1)?.kind === 'answered' && outcomes.length < 50)
      outcomes.push(await sender.post(post(`http://app.example:${port}/`)))
    expect(outcomes.at(-1)).toMatchObject(REFUSED)
    expect(privateEndpoint.connections.opened).toBe(0)
    await sender.close()
  })

  it('fails if it has no address, or DNS fails', async () => {
    const cases = [
      { name: 'missing.example', records: undefined, detail: 'the name has no address' },
      { name: 'empty.example', records: {}, detail: 'the name has no address' },
      { name: 'not..a.name', records: undefined, detail: 'the name has no address' },
      { name: 'broken.example', records: { rcode: 'SERVFAIL' }, detail: 'DNS lookup of the name failed' },
      { name: 'silent.example', records: { isSilent: true }, detail: 'DNS lookup of the name failed' },
    ] as const
    for (const { name, records, detail } of cases) {
      dns.zone = records === undefined ? {} : { [name]: records }
      // On a busy machine, even a lookup that succeeds may take a while.
      const bounds = { lookupMs: name === 'silent.example' ? 100 : 10_000 }
      const outcome = await attempt(`http://${name}:${port}/`, { ...options(), bounds })
      expect({ name, ...outcome }).toMatchObject({ name, kind: 'failed', reason: 'dns' })
      expect(outcome).toMatchObject({ detail: expect.stringContaining(detail) as string })
    }
  })

  it('is looked up once for concurrent attempts, and cached', async () => {
    dns.zone = { 'app.example': { A: [PUBLIC] } }
    const sender = openSender({ ...options(), bounds: {} })
    const url = `http://app.example:${port}/`
    await Promise.all(Array.from({ length: 10 }, () => sender.post(post(url))))
    expect(publicEndpoint.connections.opened).toBe(10)
    expect(dns.queries).toHaveLength(2)
    await sender.close()
  })
})

describe('an address in the URL', () => {
  it.each([PRIVATE, '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.2]', 'localhost', '10.0.0.1', '0'])(
    '%s is refused before a connection is opened',
    async (host) => {
      expect(await attempt(`http://${host}:${port}/`, options())).toMatchObject(REFUSED)
      expect(publicEndpoint.connections.opened + privateEndpoint.connections.opened).toBe(0)
    },
  )

  it('is accepted if it is public', async () => {
    expect(await attempt(`http://${PUBLIC}:${port}/`, options())).toMatchObject({ kind: 'answered' })
  })
})

describe('the settings', () => {
  const ports = [{ first: 1024, last: 65_535 }]

  it('refuse loopback addresses unless private addresses are allowed', async () => {
    for (const host of [PRIVATE, PUBLIC, 'localhost']) {
      const url = `http://${host}:${port}/`
      expect(await attempt(url, { allowPrivate: false, ports })).toMatchObject(REFUSED)
      if (host !== PUBLIC)
        expect(await attempt(url, { allowPrivate: true })).toMatchObject({ kind: 'answered' })
    }
    expect(privateEndpoint.requests).toHaveLength(2)
  })

  it('refuse ports that are not listed', async () => {
    const outcome = await attempt(`http://app.example:25/`, { allowPrivate: false, ports })
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'refused-port' })
    expect(policyOf({ allowPrivate: true, ports }).isPortAllowed(25)).toBe(true)
  })
})
