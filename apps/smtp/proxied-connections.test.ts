import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture

/** 127.0.0.1 is a load balancer, 127.0.0.2 is not. */
async function open(...[settings]: Parameters<typeof SmtpFixture.open>): Promise<void> {
  fixture = await SmtpFixture.started({ smtpProxyFrom: ['127.0.0.1'], ...settings })
}

afterEach(() => SmtpFixture.closeAll())

async function openWith(header: string | Buffer): Promise<Dialogue> {
  const client = await Dialogue.open(fixture.port)
  client.send(header)
  return client
}

function v1(address: string): string {
  return `PROXY TCP4 ${address} 127.0.0.1 4711 25\r\n`
}

const V2_HEAD = '\r\n\r\n\0\r\nQUIT\n'
const IPV6 = `${'\x20\x01\x0d\xb8'.padEnd(15, '\0')}\x01`
const V2 = Buffer.from(`${V2_HEAD}\x21\x21\x00\x24${IPV6}${IPV6}\x12\x67\x00\x19`, 'latin1')
const LOCAL = Buffer.from(`${V2_HEAD}\x20\x00\x00\x00`, 'latin1')

describe('a connection through a load balancer', () => {
  it('has the remote address of its header in the envelope, the log and the limits', async () => {
    await open({ smtpMaxConnectionsPerAddress: 2 })
    const { address } = await fixture.createInbox()
    const clients = [await openWith(v1('192.0.2.1')), await openWith(v1('192.0.2.1'))]
    const [client] = clients
    for (const one of clients) expect(await one.reply()).toMatch(/^220 /)
    expect(await (await openWith(v1('192.0.2.1'))).rest()).toMatch(/^421 4\.7\.0 /)
    const ipv6 = await openWith(V2)
    expect(await ipv6.address(address)).toMatch(/^250 /)
    expect(await ipv6.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    for (const line of ['EHLO a.test', 'MAIL FROM:<>', `RCPT TO:<${address}>`]) await client?.ask(line)
    expect(await client?.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    const addresses = (await fixture.received()).map(({ envelope }) => envelope.remoteAddress)
    expect(addresses).toEqual(['2001:db8::1', '192.0.2.1'])
    const accepted = fixture.logLines.filter(({ msg }) => msg === 'mail accepted')
    expect(accepted.map(({ remoteAddress }) => remoteAddress)).toEqual(addresses)
    const [refused] = fixture.logLines.filter(({ msg }) => msg === 'refused')
    expect(refused).toMatchObject({ remoteAddress: '192.0.2.1', reason: 'too-many-connections' })
  })

  it('may be a connection of the load balancer itself', async () => {
    await open()
    for (const header of [LOCAL, 'PROXY UNKNOWN\r\n']) {
      const client = await openWith(header)
      expect(await client.reply()).toMatch(/^220 /)
      expect(await client.ask('NOOP')).toMatch(/^250 /)
    }
  })

  it('must start with the header, in pieces of any size', async () => {
    await open()
    const slow = await Dialogue.open(fixture.port)
    await slow.sendInPieces(Array.from(V2, (byte) => Buffer.of(byte)))
    expect(await slow.reply()).toMatch(/^220 /)
    for (const bytes of [
      'EHLO a.test\r\n',
      'PROXY TCP4 a b 1 2\r\n',
      'x'.repeat(10_000),
      `${V2_HEAD}\x31\x11`,
    ]) {
      const client = await openWith(bytes.padEnd(20, '\0'))
      expect(await client.rest()).toBe('')
    }
    expect(fixture.logLines).toContainEqual(expect.objectContaining({ reason: 'malformed-proxy-header' }))
  })

  it('is closed if the header is missing or incomplete, or the client talks before the greeting', async () => {
    await open({ smtpHandshakeTimeoutMs: 1_500 })
    const silent = await Dialogue.open(fixture.port)
    const partial = await openWith('PROXY TCP4 ')
    const ended = await openWith('PROXY')
    ended.socket.end()
    const early = await openWith(`${v1('192.0.2.1')}EHLO early.test\r\n`)
    expect(await early.rest()).toMatch(/^421 /)
    for (const client of [silent, partial, ended]) expect(await client.rest()).toBe('')
    const after = await openWith(v1('192.0.2.1'))
    expect(await after.reply()).toMatch(/^220 /)
  })

  it('counts while it waits for its header, and does not delay the drain', async () => {
    await open({ smtpMaxConnections: 1 })
    const silent = await Dialogue.open(fixture.port)
    expect(await (await Dialogue.open(fixture.port, '127.0.0.2')).rest()).toMatch(/^421 4\.7\.0 /)
    await fixture.drain()
    expect(await silent.rest()).toBe('')
  }, 10_000)

  it('may send the header only from a configured load balancer', async () => {
    await open()
    const client = await Dialogue.open(fixture.port, '127.0.0.2')
    expect(await client.reply()).toMatch(/^220 /)
    expect(await client.ask('PROXY TCP4 192.0.2.1 192.0.2.2 1 2')).toMatch(/^500 /)
  })
})
