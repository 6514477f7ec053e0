import { startDns, type DnsServer, type NameRecords } from '#test/harness/dns.js'
import { startEndpoint, type HttpEndpoint } from '#test/harness/endpoint.js'
import { attempt, openSender, post } from '#test/harness/sender.js'
import { policyOf } from './destination.js'
import type { WebhookSenderOptions } from './webhook-sender.js'

/** Only this machine is there to be sent to, so one of its addresses is taken for public. */
const PUBLIC = '127.0.0.2'
const PRIVATE = '127.0.0.1'
const policy = { isAddressAllowed: (address: string) => address === PUBLIC, isPortAllowed: () => true }

let dns: DnsServer
let port: number
let publicOne: HttpEndpoint
let privateOne: HttpEndpoint

beforeEach(async () => {
  dns = await startDns({})
  privateOne = await startEndpoint(undefined, { host: PRIVATE })
  port = privateOne.port
  publicOne = await startEndpoint(undefined, { host: PUBLIC, port })
})
afterEach(async () => {
  dns.dispose()
  await Promise.all([publicOne.dispose(), privateOne.dispose()])
})

const options = (): Partial<WebhookSenderOptions> => ({
  allowPrivate: false,
  policy,
  dnsServers: [dns.address],
  bounds: { dnsKeptMs: 0, idleMs: 1 },
})

function attemptAt(records: NameRecords, name = 'app.example') {
  dns.zone = { [name]: records }
  return attempt(`http://${name}:${port}/`, options())
}

/** Another answer for each question. */
function oneAfterTheOther(...answers: readonly (readonly string[])[]): () => readonly string[] {
  let asked = 0
  return () => answers[Math.min(asked++, answers.length - 1)] ?? []
}

const REFUSED = {
  kind: 'failed',
  reason: 'refused-address',
  detail: 'the host has no address that is public',
}

describe('a name', () => {
  it('is sent to at the address that DNS gives', async () => {
    expect(await attemptAt({ A: [PUBLIC] })).toMatchObject({ kind: 'answered', status: 200 })
    expect(publicOne.requests[0]?.headers.host).toBe(`app.example:${port}`)
  })

  it.each([
    { A: [PRIVATE] },
    { A: ['10.0.0.1', '169.254.169.254'] },
    { AAAA: ['::1'] },
    { AAAA: ['::ffff:127.0.0.2'] },
    { A: ['127.0.0.3'], AAAA: ['fe80::1', '64:ff9b::7f00:2'] },
  ])('that leads to $A $AAAA is refused, before anything is opened', async (records) => {
    expect(await attemptAt(records)).toMatchObject(REFUSED)
    expect(publicOne.connections.opened + privateOne.connections.opened).toBe(0)
  })

  it('with private addresses beside public ones is sent to at those alone', async () => {
    const records = { A: [PRIVATE, PUBLIC, '10.0.0.1'], AAAA: ['::1'] }
    expect(await attemptAt(records)).toMatchObject({ kind: 'answered' })
    expect([publicOne.connections.opened, privateOne.connections.opened]).toEqual([1, 0])
  })

  it('is checked by the very answer that is connected to', async () => {
    const A = oneAfterTheOther([PUBLIC], [PRIVATE])
    expect(await attemptAt({ A })).toMatchObject({ kind: 'answered' })
    expect(dns.asked.toSorted()).toEqual(['A app.example', 'AAAA app.example'])
    expect([publicOne.connections.opened, privateOne.connections.opened]).toEqual([1, 0])
  })

  it('that leads elsewhere the next time is checked again', async () => {
    dns.zone = { 'app.example': { A: oneAfterTheOther([PUBLIC], [PRIVATE]) } }
    const sender = openSender(options())
    // Each asks for itself, since it finds no connection free that it could use.
    const outcomes = [await sender.post(post(`http://app.example:${port}/`))]
    while (outcomes.at(-1)?.kind === 'answered' && outcomes.length < 50)
      outcomes.push(await sender.post(post(`http://app.example:${port}/`)))
    expect(outcomes.at(-1)).toMatchObject(REFUSED)
    expect(privateOne.connections.opened).toBe(0)
    await sender.close()
  })

  it('leads nowhere', async () => {
    const cases = [
      { name: 'missing.example', records: undefined, detail: 'the name has no address' },
      { name: 'empty.example', records: {}, detail: 'the name has no address' },
      { name: 'not..a.name', records: undefined, detail: 'the name has no address' },
      { name: 'broken.example', records: { rcode: 'SERVFAIL' }, detail: 'could not be asked for' },
      { name: 'silent.example', records: { isSilent: true }, detail: 'could not be asked for' },
    ] as const
    for (const { name, records, detail } of cases) {
      dns.zone = records === undefined ? {} : { [name]: records }
      // A busy machine may take a while for those that are answered.
      const bounds = { lookUpMs: name === 'silent.example' ? 100 : 10_000 }
      const outcome = await attempt(`http://${name}:${port}/`, { ...options(), bounds })
      expect({ name, ...outcome }).toMatchObject({ name, kind: 'failed', reason: 'dns' })
      expect(outcome).toMatchObject({ detail: expect.stringContaining(detail) as string })
    }
  })

  it('is asked for once by who come together, and not again at once', async () => {
    dns.zone = { 'app.example': { A: [PUBLIC] } }
    const sender = openSender({ ...options(), bounds: {} })
    const url = `http://app.example:${port}/`
    await Promise.all(Array.from({ length: 10 }, () => sender.post(post(url))))
    expect(publicOne.connections.opened).toBe(10)
    expect(dns.asked).toHaveLength(2)
    await sender.close()
  })
})

describe('an address in the URL', () => {
  it.each([PRIVATE, '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.2]', 'localhost', '10.0.0.1', '0'])(
    '%s is refused, before anything is opened',
    async (host) => {
      expect(await attempt(`http://${host}:${port}/`, options())).toMatchObject(REFUSED)
      expect(publicOne.connections.opened + privateOne.connections.opened).toBe(0)
    },
  )

  it('is sent to where it is public', async () => {
    expect(await attempt(`http://${PUBLIC}:${port}/`, options())).toMatchObject({ kind: 'answered' })
  })
})

describe('the settings', () => {
  const ports = [{ first: 1024, last: 65_535 }]

  it('refuse this machine unless they say otherwise', async () => {
    for (const host of [PRIVATE, PUBLIC, 'localhost']) {
      const url = `http://${host}:${port}/`
      expect(await attempt(url, { allowPrivate: false, ports })).toMatchObject(REFUSED)
      if (host !== PUBLIC)
        expect(await attempt(url, { allowPrivate: true })).toMatchObject({ kind: 'answered' })
    }
    expect(privateOne.requests).toHaveLength(2)
  })

  it('refuse ports', async () => {
    const outcome = await attempt(`http://app.example:25/`, { allowPrivate: false, ports })
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'refused-port' })
    expect(policyOf({ allowPrivate: true, ports }).isPortAllowed(25)).toBe(true)
  })
})
