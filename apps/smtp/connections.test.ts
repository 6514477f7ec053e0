import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { once } from 'node:events'
import { until } from '#test/harness/until.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { MailRoom } from '#test/smtp/mail-room.js'

let room: MailRoom
let drip: NodeJS.Timeout | undefined
const MAIL = 'Subject: x\r\n\r\nbody\r\n.\r\n'

async function open(...settings: Parameters<typeof MailRoom.open>): Promise<void> {
  room = await MailRoom.open(...settings)
  await room.start()
}

afterEach(async () => {
  clearInterval(drip)
  Dialogue.closeAll()
  await room.close()
})

async function upgraded(client: Dialogue): Promise<{ tls: TLSSocket; dialogue: Dialogue }> {
  client.socket.removeAllListeners('data')
  const tls = connectTls({ socket: client.socket, rejectUnauthorized: false })
  await once(tls, 'secureConnect')
  return { tls, dialogue: new Dialogue(tls) }
}

describe('SMTP connections', () => {
  it('are bounded for each address and in all', async () => {
    await open({ smtpMaxConnections: 3, smtpMaxConnectionsPerAddress: 2 })
    const kept = [await Dialogue.open(room.port), await Dialogue.open(room.port)]
    for (const client of kept) expect(await client.reply()).toMatch(/^220/)
    expect(await (await Dialogue.open(room.port)).rest()).toMatch(/^421 4\.7\.0 /)
    const other = await Dialogue.open(room.port, '127.0.0.2')
    expect(await other.reply()).toMatch(/^220/)
    expect(await (await Dialogue.open(room.port, '127.0.0.3')).rest()).toMatch(/^421 4\.7\.0 /)
    kept[0]?.close()
    await until('a greeting', async () => (await (await Dialogue.open(room.port)).reply()).startsWith('220'))
  })

  it('are closed where a command takes too long, also when its bytes trickle in', async () => {
    await open({ smtpCommandTimeoutMs: 300 })
    const silent = await Dialogue.open(room.port)
    const trickling = await Dialogue.open(room.port)
    await trickling.reply()
    drip = setInterval(() => trickling.send('x'), 50)
    expect(await silent.rest()).toMatch(/421 /)
    expect(await trickling.rest()).toMatch(/^421 4\.4\.2 /)
  })

  it('are closed where a mail takes too long in all', async () => {
    await open({ smtpDataTimeoutMs: 1_000 })
    const { address } = await room.createInbox()
    const client = await Dialogue.open(room.port)
    await client.address(address)
    expect(await client.ask('DATA')).toMatch(/^354/)
    drip = setInterval(() => client.send('x'), 50)
    expect(await client.rest()).toMatch(/^421 4\.4\.2 /)
    expect(await room.received()).toEqual([])
  })

  it('may be slow: a mail byte by byte is a mail', async () => {
    await open()
    const { address } = await room.createInbox()
    const client = await Dialogue.open(room.port)
    client.socket.setNoDelay(true)
    await client.address(address)
    await client.ask('DATA')
    for (const byte of Buffer.from('..a\r\nb\r\n.\r\n')) {
      client.send(Buffer.of(byte))
      await new Promise(setImmediate)
    }
    expect(await client.reply()).toMatch(/^250 /)
    expect((await room.received())[0]?.raw.toString()).toBe('.a\r\nb\r\n')
  })

  it('that break in DATA, or close their side there, leave nothing', async () => {
    await open()
    const { address } = await room.createInbox()
    for (const leave of [(client: Dialogue) => client.close(), (client: Dialogue) => client.socket.end()]) {
      const client = await Dialogue.open(room.port)
      await client.address(address)
      await client.ask('DATA')
      client.send('Subject: x\r\n\r\nhalf a mail\r\n')
      leave(client)
      await until('0 connections', async () => (await room.metric('mayfly_smtp_connections')) === 0)
    }
    expect(await room.received()).toEqual([])
    const broken = room.logLines.filter(({ reason }) => reason === 'disconnected')
    expect(broken).toHaveLength(2)
  })

  it('finish their mail when the edge drains, while idle ones are told to go', async () => {
    await open()
    const { address } = await room.createInbox()
    const [idle, busy] = [await Dialogue.open(room.port), await Dialogue.open(room.port)]
    await idle.address(address)
    await busy.address(address)
    await busy.ask('DATA')
    busy.send('Subject: x\r\n')
    await until('2 connections', async () => (await room.metric('mayfly_smtp_connections')) === 2)
    let isDrained = false
    const drained = room.drain().then(() => (isDrained = true))
    expect(await idle.rest()).toMatch(/^421 4\.3\.2 /)
    idle.socket.end()
    await expect(Dialogue.open(room.port)).rejects.toThrow(/ECONNREFUSED/)
    expect(isDrained).toBe(false)
    busy.send('\r\nbody\r\n.\r\n')
    expect(await busy.reply()).toMatch(/^250 2\.0\.0 msg_/)
    expect(await busy.rest()).toMatch(/^421 4\.3\.2 /)
    busy.socket.end()
    await drained
    expect(await room.received()).toHaveLength(1)
  })

  it('that stay half open do not hold the drain up', async () => {
    await open()
    const client = await Dialogue.open(room.port)
    await client.reply()
    await room.drain()
    client.close()
  }, 10_000)
})

describe('STARTTLS', () => {
  it('shows in the envelope, with a certificate that is made once', async () => {
    await open()
    const { address } = await room.createInbox()
    const client = await Dialogue.open(room.port)
    await client.reply()
    await client.ask('EHLO client.test')
    expect(await client.ask('STARTTLS')).toMatch(/^220 /)
    const { tls, dialogue } = await upgraded(client)
    expect(await dialogue.ask('MAIL FROM:<a@x.test>')).toMatch(/^503/)
    expect(await dialogue.ask('EHLO secure.test')).not.toContain('STARTTLS')
    await dialogue.ask('MAIL FROM:<a@x.test>')
    await dialogue.ask(`RCPT TO:<${address}>`)
    expect(await dialogue.data(MAIL)).toMatch(/^250 /)
    const [mail] = await room.received()
    expect(mail?.envelope).toEqual({
      mailFrom: 'a@x.test',
      rcptTo: address,
      helo: 'secure.test',
      remoteAddress: '127.0.0.1',
      tls: { version: 'TLSv1.3', cipher: tls.getCipher().name },
    })

    const kept = join(room.folder, 'tls', 'smtp-self-signed.pem')
    const first = await stat(kept)
    expect(first.mode & 0o777).toBe(0o600)
    const { fingerprint256 } = tls.getPeerCertificate()
    tls.destroy()
    await room.drain()
    room.registry.clear()
    await room.start()
    const again = await Dialogue.open(room.port)
    await again.reply()
    await again.ask('EHLO client.test')
    await again.ask('STARTTLS')
    const second = await upgraded(again)
    expect(second.tls.getPeerCertificate().fingerprint256).toBe(fingerprint256)
    second.tls.destroy()
  })

  it('throws away what was pipelined behind it in the clear', async () => {
    await open()
    const { address } = await room.createInbox()
    const client = await Dialogue.open(room.port)
    await client.reply()
    await client.ask('EHLO client.test')
    const injected = `EHLO evil.test\r\nMAIL FROM:<evil@x.test>\r\nRCPT TO:<${address}>\r\n`
    expect(await client.ask(`STARTTLS\r\n${injected}NOOP`)).toMatch(/^220 /)
    const { tls, dialogue } = await upgraded(client)
    // Had any of it run, its reply would come first, and MAIL would not be refused for want of EHLO.
    expect(await dialogue.ask('MAIL FROM:<a@x.test>')).toMatch(/^503 5\.5\.1 Error: send HELO/)
    expect(await dialogue.ask('EHLO client.test')).toMatch(/^250-mayfly\.test/)
    expect(await dialogue.ask('DATA')).toMatch(/^503 5\.5\.1 need RCPT/)
    tls.destroy()
  })
})
