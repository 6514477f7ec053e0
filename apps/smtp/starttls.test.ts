import { once } from 'node:events'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
const TLS = { smtpTls: 'self-signed' } as const
const MAIL = 'Subject: x\r\n\r\nbody\r\n.\r\n'

afterEach(() => SmtpFixture.closeAll())

async function upgraded(
  client: Dialogue,
  options: ConnectionOptions = {},
): Promise<{ tls: TLSSocket; dialogue: Dialogue }> {
  client.socket.removeAllListeners('data')
  const tls = connectTls({ socket: client.socket, rejectUnauthorized: false, ...options })
  await once(tls, 'secureConnect')
  return { tls, dialogue: new Dialogue(tls) }
}

describe('STARTTLS', () => {
  it('is recorded in the envelope', async () => {
    fixture = await SmtpFixture.started(TLS)
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask('STARTTLS')).toMatch(/^220 /)
    const { tls, dialogue } = await upgraded(client)
    expect(await dialogue.ask('MAIL FROM:<a@x.test>')).toMatch(/^503/)
    expect(await dialogue.ask('EHLO secure.test')).not.toContain('STARTTLS')
    await dialogue.ask('MAIL FROM:<a@x.test>')
    await dialogue.ask(`RCPT TO:<${address}>`)
    expect(await dialogue.data(MAIL)).toMatch(/^250 /)
    const [mail] = await fixture.received()
    expect(mail?.envelope).toEqual({
      mailFrom: 'a@x.test',
      rcptTo: address,
      helo: 'secure.test',
      remoteAddress: '127.0.0.1',
      tls: { version: 'TLSv1.3', cipher: tls.getCipher().name },
    })
    tls.destroy()
  })

  it('discards an earlier AUTH, and offers AUTH again', async () => {
    fixture = await SmtpFixture.started(TLS)
    const auth = `AUTH PLAIN ${Buffer.from('\0user\0secret').toString('base64')}`
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask(auth)).toMatch(/^235 /)
    expect(await client.ask('STARTTLS')).toMatch(/^220 /)
    const { tls, dialogue } = await upgraded(client)
    expect(await dialogue.ask('EHLO secure.test')).toContain('AUTH PLAIN LOGIN')
    expect(await dialogue.ask(auth)).toMatch(/^235 /)
    tls.destroy()
  })

  it('discards plaintext commands that were pipelined after it', async () => {
    fixture = await SmtpFixture.started(TLS)
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    const injected = `EHLO evil.test\r\nMAIL FROM:<evil@x.test>\r\nRCPT TO:<${address}>\r\n`
    expect(await client.ask(`STARTTLS\r\n${injected}NOOP`)).toMatch(/^220 /)
    const { tls, dialogue } = await upgraded(client)
    // If a command had run, its reply would come first, and MAIL would not be refused for the missing EHLO.
    expect(await dialogue.ask('MAIL FROM:<a@x.test>')).toMatch(/^503 5\.5\.1 send HELO/)
    expect(await dialogue.ask('EHLO client.test')).toMatch(/^250-mayfly\.test/)
    expect(await dialogue.ask('DATA')).toMatch(/^503 5\.5\.1 need RCPT/)
    tls.destroy()
  })

  it('discards the envelope, and can be sent once', async () => {
    fixture = await SmtpFixture.started(TLS)
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${address}>`)
    expect(await client.ask('STARTTLS now')).toMatch(/^501 /)
    await client.ask('STARTTLS')
    const { tls, dialogue } = await upgraded(client)
    await dialogue.ask('EHLO client.test')
    expect(await dialogue.ask('DATA')).toMatch(/^503 5\.5\.1 need RCPT/)
    expect(await dialogue.ask('STARTTLS')).toMatch(/^503 5\.5\.1 /)
    tls.destroy()
  })

  it('does not run commands in the same packet, or before the handshake', async () => {
    fixture = await SmtpFixture.started(TLS)
    const { address } = await fixture.createInbox()
    const evil = `EHLO e\r\nMAIL FROM:<>\r\nRCPT TO:<${address}>\r\nDATA\r\nevil\r\n.\r\n`
    for (const bytes of [`STARTTLS\r\n${evil}`, `STARTTLS\r\n${evil.repeat(200)}`, `STARTTLS\r\nMAIL FROM`]) {
      const client = await Dialogue.greeted(fixture.port)
      client.send(bytes)
      expect(await client.reply()).toMatch(/^220 /)
      const { tls, dialogue } = await upgraded(client)
      expect(await dialogue.ask('EHLO client.test')).toMatch(/^250-mayfly\.test/)
      expect(await dialogue.ask('DATA')).toMatch(/^503 /)
      tls.destroy()
    }
    // In a separate packet they are read as the handshake, which fails.
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask('STARTTLS')).toMatch(/^220 /)
    client.send(evil)
    // A TLS alert, and no SMTP reply.
    expect(await client.rest()).not.toMatch(/^\d{3}/m)
    expect(await fixture.received()).toEqual([])
  })

  it('does not affect other sessions if it fails', async () => {
    fixture = await SmtpFixture.started(TLS)
    const other = await Dialogue.greeted(fixture.port)
    const failing: ((client: Dialogue) => void)[] = [
      (client) => client.send('this is not TLS\r\n'),
      (client) => client.close(),
      (client) => client.socket.end(),
      (client) => client.socket.resetAndDestroy(),
      // The client does not trust the certificate.
      (client) => void upgraded(client, { rejectUnauthorized: true }).catch(() => client.close()),
    ]
    for (const fail of failing) {
      const client = await Dialogue.greeted(fixture.port)
      await client.ask('STARTTLS')
      fail(client)
    }
    await fixture.untilConnectionsAre(1)
    expect(await other.ask('NOOP')).toMatch(/^250 /)
  })

  it('supports TLS 1.2 and 1.3 only, without renegotiation', async () => {
    fixture = await SmtpFixture.started(TLS)
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const client = await Dialogue.greeted(fixture.port)
      await client.ask('STARTTLS')
      const { tls, dialogue } = await upgraded(client, { minVersion: version, maxVersion: version })
      expect(tls.getProtocol()).toBe(version)
      expect(await dialogue.ask('NOOP')).toMatch(/^250 /)
      if (version === 'TLSv1.2') {
        const ended = new Promise<void>((resolve) => tls.once('error', () => resolve()))
        tls.renegotiate({}, () => undefined)
        await ended
      }
      tls.destroy()
    }
    for (const version of ['TLSv1', 'TLSv1.1'] as const) {
      const client = await Dialogue.greeted(fixture.port)
      await client.ask('STARTTLS')
      const options = { minVersion: version, maxVersion: version, ciphers: 'ALL:@SECLEVEL=0' }
      await expect(upgraded(client, options)).rejects.toThrow(/alert protocol version/)
    }
  })

  it('is required before other commands if configured', async () => {
    fixture = await SmtpFixture.started({ ...TLS, smtpRequireTls: true })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    for (const line of ['HELO client.test', 'MAIL FROM:<>', 'RSET', 'VRFY a', 'AUTH PLAIN AGEAYg==', 'WIZ']) {
      expect(await client.ask(line)).toMatch(/^530 5\.7\.0 Must issue a STARTTLS command first/)
    }
    expect(await client.ask('NOOP')).toMatch(/^250 /)
    expect(await client.ask('EHLO client.test')).toContain('250-STARTTLS')
    expect(await client.ask('MAIL FROM:<>')).toMatch(/^530 5\.7\.0 /)
    await client.ask('STARTTLS')
    const { tls, dialogue } = await upgraded(client)
    for (const line of ['EHLO client.test', 'MAIL FROM:<>', `RCPT TO:<${address}>`]) {
      expect(await dialogue.ask(line)).toMatch(/^250/)
    }
    expect(await dialogue.data(MAIL)).toMatch(/^250 /)
    tls.destroy()
  })

  it('does not delay the drain during its handshake', async () => {
    fixture = await SmtpFixture.started(TLS)
    const client = await Dialogue.greeted(fixture.port)
    await client.ask('STARTTLS')
    client.send('\x16\x03\x01')
    await fixture.drain()
  }, 10_000)
})
