import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { Authority } from '#test/harness/certificates.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'
import { loadCertificate } from './certificate.js'

const SELF_SIGNED = { smtpTls: 'self-signed', smtpsPort: 0 } as const
const MAIL = 'Subject: x\r\n\r\nbody\r\n.\r\n'
const DAY_MS = 86_400_000

let fixture: SmtpFixture

afterEach(() => SmtpFixture.closeAll())

/** Connects and verifies the certificate, as clients do by default. */
async function secureConnection(options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connectTls({ port: fixture.tlsPort, host: '127.0.0.1', ...options })
  await once(socket, 'secureConnect')
  return socket
}

const file = (name: string) => readFile(join(fixture.folder, 'tls', name), 'utf8')

async function fingerprint(ca: string): Promise<string> {
  const socket = await secureConnection({ ca })
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

async function restart(): Promise<void> {
  await fixture.drain()
  fixture.registry.clear()
  await fixture.start()
}

describe('the self-signed certificate', () => {
  it('is valid for every name and address of the server, for clients that trust its authority', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const ca = await file('ca.pem')
    for (const host of ['127.0.0.1', 'localhost', 'mayfly.test', hostname()]) {
      const socket = await secureConnection({ ca, servername: host === '127.0.0.1' ? '' : host })
      expect(socket.authorized).toBe(true)
      socket.destroy()
    }
    await expect(secureConnection({})).rejects.toThrow('unable to verify the first certificate')
    await expect(secureConnection({ ca, servername: 'elsewhere.test' })).rejects.toThrow(/does not match/)
  })

  it('names every address of a server that listens on all addresses', async () => {
    fixture = await SmtpFixture.started({ ...SELF_SIGNED, smtpHost: '::' })
    const socket = await secureConnection({ ca: await file('ca.pem'), servername: 'localhost' })
    const { subjectaltname } = socket.getPeerCertificate()
    expect(subjectaltname).toContain('IP Address:127.0.0.1')
    expect(subjectaltname).toContain('IP Address:0:0:0:0:0:0:0:1')
    expect(subjectaltname).not.toContain('0.0.0.0')
    socket.destroy()
  })

  it('is kept over restarts, with keys that only their owner can read', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const ca = await file('ca.pem')
    const before = await fingerprint(ca)
    await restart()
    expect(await fingerprint(ca)).toBe(before)
    for (const name of ['ca-key.pem', 'smtp-self-signed.pem']) {
      expect((await stat(join(fixture.folder, 'tls', name))).mode & 0o777).toBe(0o600)
    }
    expect(ca).not.toContain('PRIVATE KEY')
  })

  it('is renewed by the same authority before it expires, and when the server has another name', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const ca = await file('ca.pem')
    const first = await fingerprint(ca)
    fixture.settings.mailDomain = 'other.test'
    await restart()
    const second = await fingerprint(ca)
    expect(second).not.toBe(first)
    const socket = await secureConnection({ ca, servername: 'other.test' })
    socket.destroy()
    fixture.advance(800 * DAY_MS)
    await restart()
    const renewed = new X509Certificate(await file('smtp-self-signed.pem'))
    expect(renewed.fingerprint256).not.toBe(second)
    expect(renewed.validToDate.getTime()).toBeGreaterThan(fixture.now().getTime() + 800 * DAY_MS)
    expect(renewed.checkIssued(new X509Certificate(ca))).toBe(true)
    expect(await file('ca.pem')).toBe(ca)
  })

  it('is issued by a new authority if the old one would expire earlier', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const ca = await file('ca.pem')
    fixture.advance((3_650 - 800) * DAY_MS)
    await restart()
    const renewed = await file('ca.pem')
    expect(renewed).not.toBe(ca)
    const served = new X509Certificate(await file('smtp-self-signed.pem'))
    expect(served.verify(new X509Certificate(renewed).publicKey)).toBe(true)
  })

  it('keeps its authority if only the file that clients trust is lost', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const ca = await file('ca.pem')
    await rm(join(fixture.folder, 'tls/ca.pem'))
    await restart()
    expect(await file('ca.pem')).toBe(ca)
  })
})

describe('the files of the self-signed certificate', () => {
  it('have one authority if several processes start at once', async () => {
    fixture = await SmtpFixture.started()
    const options = {
      settings: { ...fixture.settings, smtpTls: 'self-signed' as const },
      folder: join(fixture.folder, 'tls'),
      now: () => fixture.now(),
    }
    const loaded = await Promise.all(Array.from({ length: 8 }, () => loadCertificate(options)))
    const ca = new X509Certificate(await file('ca.pem'))
    for (const certificate of loaded) {
      expect(new X509Certificate(certificate?.cert ?? '').verify(ca.publicKey)).toBe(true)
    }
    expect((await readdir(join(fixture.folder, 'tls'))).sort()).toEqual([
      'ca-key.pem',
      'ca.pem',
      'smtp-self-signed.pem',
    ])
  })

  it.each(['ca-key.pem', 'smtp-self-signed.pem'])('are named in the error if %s is damaged', async (name) => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const path = join(fixture.folder, 'tls', name)
    const whole = await readFile(path, 'utf8')
    for (const damaged of ['', whole.slice(0, 300), whole.replaceAll(/[A-Za-z]{20}/g, 'A'.repeat(20))]) {
      await writeFile(path, damaged)
      await expect(restart()).rejects.toThrow(`${path} holds no certificate with its key`)
    }
    await rm(path)
    await restart()
    const socket = await secureConnection({ ca: await file('ca.pem') })
    expect(socket.authorized).toBe(true)
    socket.destroy()
  })

  it('are replaced if the authority is not valid yet because a clock was ahead', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const before = await file('ca.pem')
    fixture.advance(-30 * DAY_MS)
    await restart()
    expect(await file('ca.pem')).not.toBe(before)
    expect(new X509Certificate(await file('ca.pem')).validFromDate.getTime()).toBeLessThan(
      fixture.now().getTime(),
    )
  })
})

describe('implicit TLS', () => {
  it('greets over TLS, does not offer STARTTLS, and is recorded in the envelope', async () => {
    fixture = await SmtpFixture.started(SELF_SIGNED)
    const { address } = await fixture.createInbox()
    const socket = await secureConnection({ ca: await file('ca.pem') })
    const client = new Dialogue(socket)
    expect(await client.reply()).toBe('220 mayfly.test ESMTP Mayfly')
    expect(await client.ask('EHLO client.test')).not.toContain('STARTTLS')
    expect(await client.ask('STARTTLS')).toMatch(/^503 /)
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${address}>`)
    expect(await client.data(MAIL)).toMatch(/^250 /)
    expect((await fixture.received())[0]?.envelope.tls).toEqual({
      version: 'TLSv1.3',
      cipher: socket.getCipher().name,
    })
    client.close()
  })

  it("uses the operator's certificate", async () => {
    const authority = await Authority.make()
    const { cert, key } = await authority.issue('mail.example', { hosts: ['mail.example'] })
    fixture = await SmtpFixture.started({
      smtpTls: 'files',
      smtpTlsCert: cert,
      smtpTlsKey: key,
      smtpsPort: 0,
    })
    const ca = await readFile(authority.certFile, 'utf8')
    const socket = await secureConnection({ ca, servername: 'mail.example' })
    expect(socket.authorized).toBe(true)
    socket.destroy()
    await authority.dispose()
  })

  it('reads the remote address from a PROXY header before the handshake', async () => {
    fixture = await SmtpFixture.started({ ...SELF_SIGNED, smtpProxyFrom: ['127.0.0.1'] })
    const { address } = await fixture.createInbox()
    const raw = await Dialogue.open(fixture.tlsPort)
    raw.socket.removeAllListeners('data')
    raw.send('PROXY TCP4 203.0.113.7 192.0.2.1 1234 465\r\n')
    const socket = await secureConnection({
      socket: raw.socket,
      ca: await file('ca.pem'),
      servername: 'localhost',
    })
    const client = new Dialogue(socket)
    await client.address(address)
    expect(await client.data(MAIL)).toMatch(/^250 /)
    expect((await fixture.received())[0]?.envelope.remoteAddress).toBe('203.0.113.7')
    client.close()
  })

  it('closes a connection whose handshake fails or does not finish, and no other', async () => {
    fixture = await SmtpFixture.started({ ...SELF_SIGNED, smtpHandshakeTimeoutMs: 1_500 })
    const other = await Dialogue.greeted(fixture.port)
    const clients = await Promise.all(
      ['EHLO client.test\r\n', '\x16\x03\x01', ''].map(async (bytes) => {
        const client = await Dialogue.open(fixture.tlsPort)
        client.send(bytes)
        return client.rest()
      }),
    )
    for (const rest of clients) expect(rest).not.toMatch(/^\d{3}/m)
    expect(await other.ask('NOOP')).toMatch(/^250 /)
    await fixture.untilConnectionsAre(1)
  })

  it('counts towards the limit of all connections', async () => {
    fixture = await SmtpFixture.started({ ...SELF_SIGNED, smtpMaxConnections: 1 })
    await Dialogue.greeted(fixture.port)
    const refused = await Dialogue.open(fixture.tlsPort)
    expect(await refused.reply()).toMatch(/^421 4\.7\.0 /)
  })
})
