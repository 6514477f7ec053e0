import { startDns, type DnsServer } from '#test/harness/dns.js'
import { SenderVerifier } from './sender-verifier.js'

let server: DnsServer
let verifier: SenderVerifier
const errors: unknown[] = []

function open(times: { dnsMs?: number; withinMs?: number } = {}): SenderVerifier {
  const onError = (error: unknown) => errors.push(error)
  return new SenderVerifier({
    ...{ memoryScale: 1, onExhausted: () => undefined },
    ...{ dnsServers: [server.address], onError, ...times },
  })
}

beforeAll(async () => {
  server = await startDns({
    'app.example': { TXT: ['v=spf1 ip4:192.0.2.1 -all'] },
    'silent.example': { isSilent: true },
    '_dmarc.silent.example': { isSilent: true },
  })
  verifier = open()
})
afterAll(async () => {
  await verifier.close()
  server.dispose()
})

const sender = { mailFrom: 'a@app.example', helo: 'mx.app.example', remoteAddress: '192.0.2.1' }
const mail = (body = '') => Buffer.from(`From: a@app.example\r\n\r\n${body}`)

describe('the authenticator', () => {
  it('verifies many small and large mails concurrently', async () => {
    const mails = [
      ...Array.from({ length: 200 }, () => mail('Hello\r\n')),
      mail('Hello\r\n'.repeat(1_000_000)),
    ]
    for (const { spf } of await Promise.all(mails.map((raw) => verifier.verify(raw, sender)))) {
      expect(spf).toMatchObject({ result: 'pass', domain: 'app.example' })
    }
    expect(errors).toEqual([])
  })

  it('is not delayed by mails whose DNS does not answer', async () => {
    const hanging = Array.from({ length: 50 }, () =>
      verifier.verify(mail(), { ...sender, mailFrom: 'a@silent.example' }),
    )
    const first = await Promise.race([verifier.verify(mail(), sender), ...hanging])
    expect(first.spf).toMatchObject({ result: 'pass' })
    for (const { spf } of await Promise.all(hanging)) expect(spf).toMatchObject({ result: 'temperror' })
  })

  it('does not delay a large mail because of another address', async () => {
    const large = mail('Hello\r\n'.repeat(200_000))
    const hanging = Array.from({ length: 8 }, () =>
      verifier.verify(large, { ...sender, mailFrom: 'a@silent.example', remoteAddress: '192.0.2.9' }),
    )
    const first = await Promise.race([verifier.verify(large, sender), ...hanging])
    expect(first.spf).toMatchObject({ result: 'pass' })
    for (const { spf } of await Promise.all(hanging)) expect(spf).toMatchObject({ result: 'temperror' })
  })

  it('replaces a thread that hangs, and verifies its other mails again', async () => {
    const hanging = open({ dnsMs: 60_000, withinMs: 3_000 })
    const [stuck, pass] = await Promise.all([
      hanging.verify(mail(), { ...sender, mailFrom: 'a@silent.example' }),
      hanging.verify(mail(), sender),
    ])
    expect(stuck.spf).toMatchObject({ result: 'temperror', detail: 'verification took longer than allowed' })
    expect(pass.spf).toMatchObject({ result: 'pass' })
    expect((await hanging.verify(mail(), sender)).spf).toMatchObject({ result: 'pass' })
    await hanging.close()
  })

  it('reports a temperror if an address sends more than can be verified in time', async () => {
    const busy = open({ dnsMs: 2_000 })
    const large = mail('Hello\r\n'.repeat(3_000_000))
    const silent = { ...sender, mailFrom: 'a@silent.example' }
    const verified = await Promise.all(Array.from({ length: 10 }, () => busy.verify(large, silent)))
    const details = verified.map(({ spf }) => spf?.detail)
    expect(details).toContain('too many mails were verified at once')
    expect((await busy.verify(mail(), sender)).spf).toMatchObject({ result: 'pass' })
    await busy.close()
  })
})
