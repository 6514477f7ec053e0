import { until } from '#test/harness/until.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
const NOBODY = '00000000000000000000@mayfly.test'

afterEach(() => SmtpFixture.closeAll())

function codesOf(text: string): string[] {
  return text.match(/^\d{3}(?= )/gm) ?? []
}

describe('commands without a mail', () => {
  const FLOODS = [
    { name: 'NOOP', lines: 'NOOP\r\n' },
    { name: 'RSET', lines: 'RSET\r\n' },
    { name: 'VRFY', lines: 'VRFY someone\r\n' },
    { name: 'HELP', lines: 'HELP\r\n' },
    { name: 'EHLO', lines: 'EHLO client.test\r\n' },
    { name: 'MAIL and RSET', lines: 'MAIL FROM:<>\r\nRSET\r\n' },
  ]
  it.each(FLOODS)('$name are bounded', async ({ lines }) => {
    fixture = await SmtpFixture.started({ smtpMaxIdleCommands: 50 })
    const client = await Dialogue.greeted(fixture.port)
    client.send(lines.repeat(1_000))
    const codes = codesOf(await client.rest())
    // EHLO was one of them.
    expect(codes).toHaveLength(50)
    expect(codes.at(-1)).toBe('421')
    expect(codes.slice(0, -1).every((code) => code.startsWith('2'))).toBe(true)
  })

  it('are counted from zero after a mail', async () => {
    fixture = await SmtpFixture.started({ smtpMaxIdleCommands: 10 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    for (let mail = 0; mail < 3; mail += 1) {
      for (let n = 0; n < 8; n += 1) expect(await client.ask('NOOP')).toMatch(/^250 /)
      await client.ask('MAIL FROM:<>')
      await client.ask(`RCPT TO:<${address}>`)
      expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    }
  })

  it('are bounded if one recipient is repeated', async () => {
    fixture = await SmtpFixture.started({ smtpMaxIdleCommands: 50 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    client.send(`MAIL FROM:<>\r\n${`RCPT TO:<${address}>\r\n`.repeat(1_000)}`)
    const codes = codesOf(await client.rest())
    expect(codes.length).toBeLessThanOrEqual(51)
    expect(codes.at(-1)).toBe('421')
  })

  it('are bounded if a mail has too many recipients', async () => {
    fixture = await SmtpFixture.started({ smtpMaxRecipients: 2 })
    const inboxes = await Promise.all(Array.from({ length: 3 }, () => fixture.createInbox()))
    const client = await Dialogue.greeted(fixture.port)
    const recipients = inboxes.map(({ address }) => `RCPT TO:<${address}>\r\n`).join('')
    client.send(`MAIL FROM:<>\r\n${recipients}${`RCPT TO:<${inboxes[2]?.address}>\r\n`.repeat(3_000)}`)
    const codes = codesOf(await client.rest())
    expect(codes.slice(0, 5)).toEqual(['250', '250', '250', '452', '452'])
    expect(codes.at(-1)).toBe('421')
    expect(codes.length).toBeLessThan(2_010)
  })

  it('do not affect other sessions', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const flooding = await Promise.all(Array.from({ length: 20 }, () => Dialogue.greeted(fixture.port)))
    for (const client of flooding) client.send('NOOP\r\n'.repeat(100_000))
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    for (const one of flooding) expect(codesOf(await one.rest()).at(-1)).toBe('421')
  })

  it('do not fill the log', async () => {
    fixture = await SmtpFixture.started({ smtpMaxErrors: 100_000, smtpMaxIdleCommands: 100_000 })
    const client = await Dialogue.greeted(fixture.port)
    const startedAtMs = performance.now()
    client.send('NONSENSE\r\n'.repeat(1_900))
    client.send('QUIT\r\n')
    expect(codesOf(await client.rest())).toHaveLength(1_901)
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000)
    const lines = fixture.logLines.filter(({ msg }) => msg === 'refused')
    expect(lines.length).toBeLessThanOrEqual(100 * (seconds + 1))
    expect(await fixture.metric('mayfly_mails_refused_total')).toBe(1_900)
  })
})

describe('guessed recipients', () => {
  it('are answered with growing delays, then the session is closed; other sessions are not delayed', async () => {
    fixture = await SmtpFixture.started({ smtpMaxUnknownRecipients: 20, smtpUnknownRecipientDelayMs: 200 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    await client.ask('MAIL FROM:<>')
    const times: number[] = []
    for (let n = 0; n < 12; n += 1) {
      const startedAtMs = performance.now()
      expect(await client.ask(`RCPT TO:<${NOBODY}>`)).toMatch(/^550 5\.1\.1 /)
      times.push(performance.now() - startedAtMs)
    }
    expect(Math.min(...times.slice(0, 2))).toBeLessThan(200)
    expect(Math.min(...times.slice(-2))).toBeGreaterThanOrEqual(190)
    client.send(`RCPT TO:<${NOBODY}>\r\n`.repeat(20))
    const other = await Dialogue.open(fixture.port)
    expect(await other.address(address)).toMatch(/^250 /)
    expect(await other.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    expect(codesOf(await client.rest())).toEqual([...Array<string>(8).fill('550'), '421'])
  })

  it('are no errors of a client that has sent DATA before their replies', async () => {
    fixture = await SmtpFixture.started({ smtpMaxErrors: 3 })
    const client = await Dialogue.greeted(fixture.port)
    client.send(`MAIL FROM:<>\r\nRCPT TO:<${NOBODY}>\r\nDATA\r\nRSET\r\n`.repeat(10))
    client.send('QUIT\r\n')
    const ofMail = ['250', '550', '503', '250']
    expect(codesOf(await client.rest())).toEqual([...Array.from({ length: 10 }, () => ofMail).flat(), '221'])
  })

  it('are offset by recipients that exist', async () => {
    fixture = await SmtpFixture.started({
      smtpMaxUnknownRecipients: 10,
      smtpMaxUnknownRecipientsPerAddress: 10,
    })
    const client = await Dialogue.greeted(fixture.port)
    for (let mail = 0; mail < 10; mail += 1) {
      const inboxes = await Promise.all(Array.from({ length: 3 }, () => fixture.createInbox()))
      await client.ask('MAIL FROM:<>')
      for (const { address } of inboxes) {
        expect(await client.ask(`RCPT TO:<${address}>`)).toMatch(/^250 /)
        expect(await client.ask(`RCPT TO:<${NOBODY}>`)).toMatch(/^550 /)
      }
      expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    }
  })

  it('do not include inboxes that have ended', async () => {
    fixture = await SmtpFixture.started({ smtpMaxUnknownRecipients: 10, smtpUnknownRecipientDelayMs: 60_000 })
    const { address } = await fixture.createInbox()
    fixture.advance(2 * 3_600_000)
    const client = await Dialogue.greeted(fixture.port)
    await client.ask('MAIL FROM:<>')
    for (let n = 0; n < 50; n += 1) expect(await client.ask(`RCPT TO:<${address}>`)).toMatch(/^550 5\.1\.1 /)
  })

  it('also count for the remote address, over all its sessions', async () => {
    fixture = await SmtpFixture.started({
      smtpMaxUnknownRecipients: 10,
      smtpMaxUnknownRecipientsPerAddress: 15,
      smtpUnknownRecipientDelayMs: 0,
    })
    const allowance = async (from?: string) => {
      const client = await Dialogue.greeted(fixture.port, from)
      client.send(`MAIL FROM:<>\r\n${`RCPT TO:<${NOBODY}>\r\n`.repeat(20)}`)
      const codes = codesOf(await client.rest())
      expect(codes.at(-1)).toBe('421')
      return codes.filter((code) => code === '550').length
    }
    expect(await allowance()).toBe(10)
    expect(await allowance()).toBeLessThan(10)
    expect(await allowance()).toBe(1)
    expect(await allowance('127.0.0.2')).toBe(10)
  })
})

describe('one remote address', () => {
  it('may open a bounded number of connections in a minute', async () => {
    fixture = await SmtpFixture.started({ smtpMaxConnectionsPerMinute: 3 })
    for (let n = 0; n < 3; n += 1) (await Dialogue.greeted(fixture.port)).close()
    expect(await (await Dialogue.open(fixture.port)).rest()).toMatch(
      /^421 4\.7\.0 too many connections within/,
    )
    expect(await (await Dialogue.greeted(fixture.port, '127.0.0.2')).ask('NOOP')).toMatch(/^250 /)
  })

  it('may use a part of the memory for mail', async () => {
    fixture = await SmtpFixture.started({
      maxMessageBytes: 50_000,
      smtpMemoryBytes: 200_000,
      smtpMemoryPercentPerAddress: 50,
    })
    const { address } = await fixture.createInbox()
    const begin = async (from: string) => {
      const client = await Dialogue.greeted(fixture.port, from)
      await client.ask('MAIL FROM:<> SIZE=40000')
      await client.ask(`RCPT TO:<${address}>`)
      return { client, reply: await client.ask('DATA') }
    }
    const first = await begin('127.0.0.1')
    expect(first.reply).toMatch(/^354 /)
    expect((await begin('127.0.0.1')).reply).toMatch(/^354 /)
    const third = await Dialogue.greeted(fixture.port, '127.0.0.1')
    expect(await third.ask('MAIL FROM:<> SIZE=40000')).toMatch(/^451 4\.3\.1 /)
    expect((await begin('127.0.0.2')).reply).toMatch(/^354 /)
    first.client.close()
    await until('memory to be free again', async () =>
      (await third.ask('MAIL FROM:<> SIZE=40000')).startsWith('250'),
    )
  })

  it('loses incomplete mails to other addresses when memory is full', async () => {
    fixture = await SmtpFixture.started({
      maxMessageBytes: 50_000,
      smtpMemoryBytes: 200_000,
      smtpMemoryPercentPerAddress: 100,
    })
    const { address } = await fixture.createInbox()
    const begin = async (from: string) => {
      const client = await Dialogue.greeted(fixture.port, from)
      await client.ask('MAIL FROM:<> SIZE=45000')
      await client.ask(`RCPT TO:<${address}>`)
      expect(await client.ask('DATA')).toMatch(/^354 /)
      client.send(`Subject: x\r\n\r\n${'y'.repeat(44_000)}`)
      return client
    }
    const end = (client: Dialogue) => client.ask('\r\n.')
    const slow = [await begin('127.0.0.1'), await begin('127.0.0.1'), await begin('127.0.0.1')]
    slow.push(await begin('127.0.0.1'))
    const others = [await begin('127.0.0.2'), await begin('127.0.0.3')]
    for (const client of others) expect(await end(client)).toMatch(/^250 /)
    const codes = await Promise.all(slow.map(end))
    expect(codes.map((reply) => reply.slice(0, 9))).toEqual([
      '451 4.3.1',
      '451 4.3.1',
      expect.stringMatching(/^250 /),
      expect.stringMatching(/^250 /),
    ])
  })

  it('may not send an endless mail', async () => {
    fixture = await SmtpFixture.started({ maxMessageBytes: 50_000 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    expect(await client.ask('DATA')).toMatch(/^354 /)
    for (let sent = 0; sent < 64 && !client.socket.destroyed; sent += 1) client.send('x'.repeat(64 << 10))
    expect(await client.rest()).toMatch(/^552 5\.3\.4 /)
  })
})

describe('many connections', () => {
  it('of one address are closed for connections of others', async () => {
    fixture = await SmtpFixture.started({ smtpMaxConnections: 4, smtpMaxConnectionsPerAddress: 4 })
    const { address } = await fixture.createInbox()
    const first: Dialogue[] = []
    for (let n = 0; n < 4; n += 1) first.push(await Dialogue.greeted(fixture.port))
    // One of them is sending a mail.
    await first[0]?.ask('MAIL FROM:<>')
    await first[0]?.ask(`RCPT TO:<${address}>`)
    await first[0]?.ask('DATA')
    for (const closed of first.slice(0, 2)) {
      const other = await Dialogue.open(fixture.port, '127.0.0.2')
      expect(await other.address(address)).toMatch(/^250 /)
      expect(await closed.rest()).toMatch(/^421 4\.7\.0 /)
    }
    const beyond = await Dialogue.open(fixture.port, '127.0.0.2')
    expect(await beyond.rest()).toMatch(/^421 4\.7\.0 /)
    for (const kept of first.slice(2)) expect(await kept.ask('NOOP')).toMatch(/^250 /)
  })

  const OPENED = 600
  const KEPT = 400

  it('are served up to the limit and refused beyond it; memory is freed', async () => {
    fixture = await SmtpFixture.started({ smtpMaxConnections: KEPT, smtpMaxConnectionsPerAddress: KEPT })
    const { address } = await fixture.createInbox()
    const first = await Dialogue.greeted(fixture.port)
    const before = process.memoryUsage().rss
    const clients: Dialogue[] = []
    for (let n = 1; n < KEPT; n += 50) {
      const count = Math.min(50, KEPT - n)
      clients.push(...(await Promise.all(Array.from({ length: count }, () => Dialogue.open(fixture.port)))))
    }
    for (const client of clients) expect(await client.reply()).toMatch(/^220 /)
    for (let n = KEPT; n < OPENED; n += 20) {
      const more = await Promise.all(Array.from({ length: 20 }, () => Dialogue.open(fixture.port)))
      for (const client of more) expect(await client.rest()).toMatch(/^(421 4\.7\.0 .*\r\n)?$/)
      for (const client of more) client.close()
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(256 << 20)
    await first.ask('MAIL FROM:<>')
    expect(await first.ask(`RCPT TO:<${address}>`)).toMatch(/^250 /)
    expect(await first.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    for (const client of clients) client.close()
    await fixture.untilConnectionsAre(1)
  })
})
