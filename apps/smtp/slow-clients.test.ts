import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
const dripping: NodeJS.Timeout[] = []

afterEach(async () => {
  for (const timer of dripping.splice(0)) clearInterval(timer)
  await SmtpFixture.closeAll()
})

function drip(client: Dialogue, bytes: string): void {
  dripping.push(setInterval(() => client.send(bytes), 40))
}

/** The lines that each client sends before it slows down, and the bytes that it then trickles. */
const STATES = [
  { state: 'before EHLO', lines: [], partial: '', bytes: '' },
  { state: 'in its first command', lines: [], partial: '', bytes: 'x' },
  { state: 'after EHLO', lines: ['EHLO a.test'], partial: '', bytes: '' },
  { state: 'after MAIL', lines: ['EHLO a.test', 'MAIL FROM:<>'], partial: '', bytes: '' },
  { state: 'in RCPT', lines: ['EHLO a.test', 'MAIL FROM:<>'], partial: 'RCPT TO:<', bytes: 'x' },
]

describe('a slow client', () => {
  it('is disconnected with 421 after the command timeout, in any state', async () => {
    fixture = await SmtpFixture.started({ smtpCommandTimeoutMs: 4_000 })
    const clients = await Promise.all(
      STATES.map(async ({ lines, partial, bytes }) => {
        const client = await Dialogue.open(fixture.port)
        await client.reply()
        for (const line of lines) expect(await client.ask(line)).toMatch(/^250/)
        if (partial !== '') client.send(partial)
        if (bytes !== '') drip(client, bytes)
        return client
      }),
    )
    const ends = await Promise.all(clients.map((client) => client.rest()))
    expect(ends).toEqual(STATES.map(() => expect.stringMatching(/(^|\n)421 [^\n]*\r\n$/) as string))
    for (const client of clients) client.close()
    await fixture.untilConnectionsAre(0)
  })

  it('is disconnected after the session timeout if its commands deliver no mail', async () => {
    fixture = await SmtpFixture.started({ smtpSessionTimeoutMs: 4_000 })
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    drip(client, 'NOOP\r\n')
    expect(await client.rest()).toMatch(/^(250 2\.0\.0 OK\r\n)+421 4\.4\.2 /)
  })

  it('gets the full session timeout again after each mail', async () => {
    const smtpSessionTimeoutMs = 5_000
    fixture = await SmtpFixture.started({ smtpSessionTimeoutMs })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    const startedAtMs = performance.now()
    while (performance.now() - startedAtMs < 2 * smtpSessionTimeoutMs) {
      await setTimeout(200)
      expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
      await client.ask('MAIL FROM:<>')
      await client.ask(`RCPT TO:<${address}>`)
    }
  })

  it('that does not read its replies is disconnected, and uses little memory', async () => {
    fixture = await SmtpFixture.started({ smtpCommandTimeoutMs: 500, smtpMaxIdleCommands: 1_000_000 })
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    client.socket.pause()
    const before = process.memoryUsage().rss
    let isBlocked = false
    for (let sent = 0; sent < 64 && !isBlocked; sent += 1) {
      isBlocked = !client.socket.write('EHLO a.test\r\n'.repeat(10_000))
      if (isBlocked) await Promise.race([once(client.socket, 'drain'), new Promise(setImmediate)])
    }
    expect(isBlocked).toBe(true)
    await fixture.untilConnectionsAre(0)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20)
  })

  it.each([
    { what: 'nothing', bytes: '' },
    { what: 'repeated NOOP', bytes: 'NOOP\r\n' },
    { what: 'repeated MAIL and RSET', bytes: 'MAIL FROM:<>\r\nRSET\r\n' },
  ])('is disconnected sooner while few connection slots are left: $what', async ({ bytes }) => {
    fixture = await SmtpFixture.started({ smtpMaxConnections: 5, smtpCrowdedTimeoutMs: 4_000 })
    const { address } = await fixture.createInbox()
    const delivering = await Dialogue.open(fixture.port)
    await delivering.address(address)
    const idle = await Promise.all(Array.from({ length: 4 }, () => Dialogue.greeted(fixture.port)))
    if (bytes !== '') for (const client of idle) drip(client, bytes)
    const ends = idle.map((client) => client.rest())
    const disconnected = new AbortController()
    // Once a slot is free again, no other client is disconnected.
    const firstEnd = Promise.race(ends).finally(() => disconnected.abort())
    while (!disconnected.signal.aborted) {
      await setTimeout(200)
      expect(await delivering.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
      await delivering.ask('MAIL FROM:<>')
      await delivering.ask(`RCPT TO:<${address}>`)
    }
    expect(await firstEnd).toMatch(/(^|\n)421 4\.7\.0 too many connections[^\n]*\r\n$/)
    expect(await delivering.ask('NOOP')).toMatch(/^250 /)
    for (const client of idle) client.close()
    await Promise.all(ends)
  })

  it('that does not complete its TLS handshake is disconnected, without affecting other sessions', async () => {
    fixture = await SmtpFixture.started({ smtpTls: 'self-signed', smtpHandshakeTimeoutMs: 1_500 })
    const clients = await Promise.all(
      ['', '\x16\x03\x01'].map(async (hello) => {
        const client = await Dialogue.open(fixture.port)
        await client.reply()
        await client.ask('EHLO a.test')
        expect(await client.ask('STARTTLS')).toMatch(/^220 /)
        if (hello !== '') client.send(hello)
        return client
      }),
    )
    const [idle] = clients
    if (idle !== undefined) drip(idle, '\x16')
    const other = await Dialogue.open(fixture.port)
    await other.reply()
    for (const client of clients) expect(await client.rest()).toBe('')
    for (const client of clients) client.close()
    expect(await other.ask('NOOP')).toMatch(/^250 /)
    expect(fixture.logLines).toContainEqual(expect.objectContaining({ reason: 'handshake-failed' }))
  })

  it('is also disconnected in a mail over TLS', async () => {
    fixture = await SmtpFixture.started({ smtpTls: 'self-signed', smtpDataTimeoutMs: 1_000 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    await client.ask('EHLO a.test')
    await client.ask('STARTTLS')
    client.socket.removeAllListeners('data')
    const tls = connectTls({ socket: client.socket, rejectUnauthorized: false })
    await once(tls, 'secureConnect')
    const secure = new Dialogue(tls)
    for (const line of ['EHLO a.test', 'MAIL FROM:<>', `RCPT TO:<${address}>`, 'DATA']) await secure.ask(line)
    drip(secure, 'x')
    expect(await secure.rest()).toMatch(/^421 4\.4\.2 /)
    tls.destroy()
    await fixture.untilConnectionsAre(0)
    expect(await fixture.received()).toEqual([])
  })
})
