import { connect } from 'node:net'
import { createTransport } from 'nodemailer'
import type { Address } from '#libs/domain/inbox/events.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
let address: Address

beforeAll(async () => {
  fixture = await SmtpFixture.started({ smtpMaxRecipients: 100, maxMessageBytes: 100_000 })
  ;({ address } = await fixture.createInbox())
})

afterEach(() => Dialogue.closeAll())
afterAll(() => fixture.close())

/** `ADDRESS` is replaced by the address of an active inbox. */
const TABLE: { name: string; steps: { send: string; expect: RegExp }[] }[] = [
  {
    name: 'a mail, and commands after it',
    steps: [
      { send: 'HELO client.test', expect: /^250 mayfly\.test/ },
      { send: 'MAIL FROM:<>', expect: /^250 2\.1\.0 / },
      { send: 'RCPT TO:<ADDRESS>', expect: /^250 2\.1\.5 / },
      { send: 'DATA', expect: /^354 / },
      { send: 'Subject: x\r\n\r\nbody\r\n.', expect: /^250 2\.0\.0 msg_[0-9a-z]{26}$/ },
      { send: 'RCPT TO:<ADDRESS>', expect: /^503 5\.5\.1 / },
      { send: 'MAIL FROM:<a@x.test>', expect: /^250 / },
      { send: 'RSET', expect: /^250 2\.0\.0 / },
      { send: 'NOOP', expect: /^250 2\.0\.0 / },
      { send: 'QUIT', expect: /^221 2\.0\.0 / },
    ],
  },
  {
    name: 'offered extensions',
    steps: [
      {
        send: 'EHLO client.test',
        expect:
          /^250-mayfly\.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250-AUTH PLAIN LOGIN XOAUTH2 OAUTHBEARER\r\n250 SIZE 100000$/,
      },
    ],
  },
  {
    name: 'order of commands',
    steps: [
      { send: 'MAIL FROM:<a@x.test>', expect: /^503 5\.5\.1 / },
      { send: 'EHLO client.test', expect: /^250/ },
      { send: 'RCPT TO:<ADDRESS>', expect: /^503 5\.5\.1 / },
      { send: 'DATA', expect: /^503 5\.5\.1 / },
      { send: 'MAIL FROM:<a@x.test>', expect: /^250/ },
      { send: 'DATA', expect: /^503 5\.5\.1 need RCPT/ },
      { send: 'MAIL FROM:<a@x.test>', expect: /^503 5\.5\.1 / },
    ],
  },
  {
    name: 'syntax',
    steps: [
      { send: 'EHLO', expect: /^501/ },
      { send: 'EHLO client.test', expect: /^250/ },
      { send: 'MAIL FROM: a@x.test', expect: /^501 5\.1\.7 / },
      { send: 'MAIL FROM:<a@x.test> SIZE=many', expect: /^501 5\.5\.4 / },
      { send: 'MAIL FROM:<a@x.test>', expect: /^250/ },
      { send: 'RCPT TO:<>', expect: /^501 5\.1\.3 / },
    ],
  },
  {
    name: 'unknown recipients',
    steps: [
      { send: 'EHLO client.test', expect: /^250/ },
      { send: 'MAIL FROM:<a@x.test>', expect: /^250/ },
      { send: 'RCPT TO:<00000000000000000000@mayfly.test>', expect: /^550 5\.1\.1 / },
      { send: 'RCPT TO:<postmaster>', expect: /^550 5\.1\.1 / },
      { send: 'RCPT TO:<someone@mayfly.test>', expect: /^550 5\.1\.1 / },
      { send: 'RCPT TO:<00000000000000000000@elsewhere.test>', expect: /^550 5\.1\.1 / },
      { send: 'DATA', expect: /^503/ },
    ],
  },
  {
    name: 'a declared size above the limit',
    steps: [
      { send: 'EHLO client.test', expect: /^250/ },
      { send: 'MAIL FROM:<a@x.test> SIZE=100001', expect: /^552 5\.3\.4 / },
      { send: 'MAIL FROM:<a@x.test> SIZE=100000', expect: /^250/ },
    ],
  },
  {
    name: 'extensions that are not offered',
    steps: [
      { send: 'EHLO client.test', expect: /^250/ },
      { send: 'STARTTLS', expect: /^502 5\.5\.1 / },
      { send: 'AUTH CRAM-MD5', expect: /^504 / },
      { send: 'VRFY someone', expect: /^252 2\.1\.5 / },
      { send: 'EXPN list', expect: /^502 5\.5\.1 / },
      { send: 'WIZ', expect: /^500 5\.5\.2 / },
      { send: 'XCLIENT NAME=x', expect: /^500 5\.5\.2 / },
    ],
  },
  {
    name: 'an HTTP request',
    steps: [{ send: 'POST / HTTP/1.1', expect: /^421/ }],
  },
]

describe('SMTP dialogue', () => {
  it.each(TABLE)('$name', async ({ steps }) => {
    const client = await Dialogue.open(fixture.port)
    expect(await client.reply()).toBe('220 mayfly.test ESMTP Mayfly')
    for (const { send, expect: pattern } of steps) {
      expect(await client.ask(send.replace('ADDRESS', address))).toMatch(pattern)
    }
    client.close()
  })

  it('greets at once', async () => {
    const times: number[] = []
    for (let i = 0; i < 20; i += 1) {
      const startedAtMs = performance.now()
      const client = await Dialogue.open(fixture.port)
      await client.reply()
      times.push(performance.now() - startedAtMs)
      client.close()
    }
    // smtp-server itself waits 100 ms.
    expect(Math.min(...times)).toBeLessThan(100)
  })

  it('accepts pipelined commands, and answers those after a mail once the mail is answered', async () => {
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    const mail = `MAIL FROM:<a@x.test>\r\nRCPT TO:<${address}>\r\nDATA\r\nSubject: x\r\n\r\n.\r\n`
    client.send(`EHLO client.test\r\n${mail}${mail}QUIT\r\n`)
    const replies: string[] = []
    for (let i = 0; i < 10; i += 1) replies.push((await client.reply()).slice(0, 3))
    expect(replies).toEqual(['250', '250', '250', '354', '250', '250', '250', '354', '250', '221'])
  })

  it('refuses a client that talks before the greeting', async () => {
    const client = new Dialogue(connect(fixture.port, '127.0.0.1'))
    client.send('EHLO early.test\r\n')
    expect(await client.rest()).toMatch(/^421 /)
  })

  it('ends a session after too many errors, or a command line that is too long', async () => {
    const errors = await Dialogue.open(fixture.port)
    await errors.reply()
    errors.send('NONSENSE\r\n'.repeat(1_000))
    expect((await errors.rest()).match(/^\d{3}/gm)).toEqual([...Array<string>(19).fill('500'), '421'])

    const before = process.memoryUsage().rss
    const long = await Dialogue.open(fixture.port)
    await long.reply()
    long.send('x'.repeat(1 << 20))
    expect(await long.rest()).toMatch(/^500 5\.5\.2 the command line is too long/)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 << 20)
  })

  it('accepts at most ten tags of one inbox, with a record for each', async () => {
    const [local = '', domain = ''] = address.split('@')
    const before = (await fixture.received()).length
    const client = await Dialogue.open(fixture.port)
    const tagged = Array.from({ length: 11 }, (_, n) => `${local}+${n}@${domain}`)
    expect(await client.address(...tagged)).toMatch(/^452 4\.5\.3 /)
    expect(await client.data('Subject: tags\r\n\r\n.\r\n')).toMatch(/^250 2\.0\.0( msg_[0-9a-z]{26}){10}$/)
    expect(await fixture.received()).toHaveLength(before + 10)
    client.close()
  })

  it('accepts at most a hundred recipients, with a record for each', async () => {
    const inboxes = await Promise.all(Array.from({ length: 101 }, () => fixture.createInbox()))
    const before = (await fixture.received()).length
    const client = await Dialogue.open(fixture.port)
    expect(await client.address(...inboxes.map((inbox) => inbox.address))).toMatch(/^452 4\.5\.3 /)
    const reply = await client.data('Subject: many\r\n\r\n.\r\n')
    expect(reply).toMatch(/^250 2\.0\.0( msg_[0-9a-z]{26}){16}$/)
    expect(reply.length + 2).toBeLessThanOrEqual(512)
    expect(await fixture.received()).toHaveLength(before + 100)
    client.close()
  })

  it('appends a record for each recipient of a Bcc, and a single one for a repeated recipient', async () => {
    const [to, bcc] = [await fixture.createInbox(), await fixture.createInbox()]
    const mailer = createTransport({ host: '127.0.0.1', port: fixture.port, ignoreTLS: true })
    const tagged = bcc.address.replace(/^.*@/, (local) => `${local.toUpperCase().slice(0, -1)}+Tag@`)
    const { response } = await mailer.sendMail({
      from: 'sender@x.test',
      to: [to.address, to.address],
      bcc: tagged,
      subject: 'Grüße',
      text: 'hidden',
    })
    mailer.close()
    expect(response).toMatch(/^250 2\.0\.0 msg_\w+ msg_\w+$/)
    const mails = (await fixture.received()).filter(({ event }) => [to.id, bcc.id].includes(event.inboxId))
    expect(mails.map(({ envelope }) => envelope.rcptTo).sort()).toEqual([to.address, tagged].sort())
    for (const { envelope, event, raw } of mails) {
      expect(envelope).toMatchObject({ mailFrom: 'sender@x.test', remoteAddress: '127.0.0.1', tls: null })
      expect(event.size).toBe(raw.length)
      expect(raw.toString()).not.toContain('Bcc')
    }
  })

  it('writes one log line for a mail, with its ids and without its content', async () => {
    fixture.logLines.length = 0
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    const reply = await client.data('Subject: secret\r\n\r\nsecret\r\n.\r\n')
    const lines = fixture.logLines.filter(({ msg }) => msg === 'mail accepted')
    expect(lines).toMatchObject([{ messageIds: [reply.split(' ')[2]], recipients: 1, bytes: 27 }])
    expect(JSON.stringify(fixture.logLines)).not.toMatch(/secret/)
    expect(JSON.stringify(fixture.logLines)).not.toContain(address.split('@')[0])
    client.close()
    await fixture.untilConnectionsAre(0)
  })
})
