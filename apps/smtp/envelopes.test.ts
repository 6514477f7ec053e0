import type { Address } from '#libs/domain/inbox/events.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
let address: Address
let [local, domain] = ['', '']

beforeAll(async () => {
  fixture = await SmtpFixture.started({ smtpMaxErrors: 1_000 })
  ;({ address } = await fixture.createInbox())
  ;[local = '', domain = ''] = address.split('@')
})

afterEach(() => Dialogue.closeAll())
afterAll(() => fixture.close())

/** Encodes text as UTF-8, to be sent as bytes. */
function utf8(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const SENDERS = [
  { path: '<>', expect: /^250 2\.1\.0 / },
  { path: '<a@x.test>', expect: /^250 / },
  { path: ' <a@x.test>', expect: /^250 / },
  { path: '<a@x.test> ', expect: /^250 / },
  { path: '<A.B+c=d!#$%&*/?^_`{|}~-@x.test>', expect: /^250 / },
  { path: '<a.@x.test>', expect: /^250 / },
  { path: '<"a b>@\\"c"@x.test>', expect: /^250 / },
  { path: '<a@[192.0.2.1]>', expect: /^250 / },
  { path: '<a@[IPv6:2001:db8::1]>', expect: /^250 / },
  { path: '<@one.test,@two.test:a@x.test>', expect: /^250 / },
  { path: `<${'a'.repeat(247)}@x.test>`, expect: /^250 / },
  { path: '<a@x.test> SIZE=100 BODY=8BITMIME', expect: /^250 / },
  { path: '<a@x.test> body=7bit', expect: /^250 / },
  { path: utf8('<grüße@straße.test> SMTPUTF8'), expect: /^250 / },
  { path: utf8('<grüße@x.test>'), expect: /^553 5\.6\.7 / },
  { path: utf8('<a@straße.test>'), expect: /^553 5\.6\.7 / },
  { path: '<\xe4@x.test> SMTPUTF8', expect: /^501 5\.1\.7 / },
  { path: utf8('<a\u200bb@x.test> SMTPUTF8'), expect: /^501 5\.1\.7 / },
  ...['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'].flatMap((direction) => [
    { path: utf8(`<a${direction}b@x.test> SMTPUTF8`), expect: /^501 5\.1\.7 / },
    { path: utf8(`<a@x${direction}y.test> SMTPUTF8`), expect: /^501 5\.1\.7 / },
  ]),
  { path: '<a@x.test>SIZE=100', expect: /^501 5\.1\.7 / },
  { path: '<a@x.test', expect: /^501 5\.1\.7 / },
  { path: '<"a@x.test>', expect: /^501 5\.1\.7 / },
  { path: '<a@b@x.test>', expect: /^501 5\.1\.7 / },
  { path: '<a b@x.test>', expect: /^501 5\.1\.7 / },
  { path: '<a@>', expect: /^501 5\.1\.7 / },
  { path: '<@x.test>', expect: /^501 5\.1\.7 / },
  { path: '<a>', expect: /^501 5\.1\.7 / },
  { path: '<a@x..test>', expect: /^501 5\.1\.7 / },
  { path: '<a@-x.test>', expect: /^501 5\.1\.7 / },
  { path: '<a@[192.0.2.256]>', expect: /^501 5\.1\.7 / },
  { path: '<a@[IPv6:fe80::1%eth0%]>', expect: /^501 5\.1\.7 / },
  { path: `<${'a'.repeat(248)}@x.test>`, expect: /^501 5\.1\.7 / },
  { path: '<a@x.test> SIZE=', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> SIZE=1 SIZE=2', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> SIZE=123456789012345678901', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> SIZE=99999999999999999999', expect: /^552 5\.3\.4 / },
  { path: '<a@x.test> BODY=BINARYMIME', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> SMTPUTF8=yes', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> AUTH=<>', expect: /^250 / },
  { path: '<a@x.test> AUTH=', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> RET=FULL ENVID=QQ314159', expect: /^250 / },
  { path: '<a@x.test> ret=hdrs SIZE=100', expect: /^250 / },
  { path: '<a@x.test> RET=BODY', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> ENVID=', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> RET=FULL RET=HDRS', expect: /^501 5\.5\.4 / },
  { path: '<a@x.test> NOTIFY=NEVER', expect: /^555 5\.5\.4 / },
  { path: '<a@x.test> REQUIRETLS', expect: /^555 5\.5\.4 / },
  { path: '<a@x.test> __proto__=x', expect: /^555 5\.5\.4 / },
  { path: '<a@x.test> =x', expect: /^555 5\.5\.4 / },
]

const RECIPIENTS = [
  { path: '<LOCAL@DOMAIN>', expect: /^250 2\.1\.5 / },
  { path: '<LOCAL@DOMAIN>  ', expect: /^250 / },
  { path: '<"LOCAL"@DOMAIN>', expect: /^250 / },
  { path: '<"LOCAL+a b"@DOMAIN>', expect: /^250 / },
  { path: '<@one.test,@two.test:LOCAL@DOMAIN>', expect: /^250 / },
  { path: utf8('<LOCAL+ü@DOMAIN>'), expect: /^553 5\.6\.7 / },
  { path: '<LOCAL@[127.0.0.1]>', expect: /^550 5\.1\.1 / },
  { path: '<Postmaster>', expect: /^550 5\.1\.1 / },
  { path: '<postmaster@DOMAIN>', expect: /^550 5\.1\.1 / },
  { path: '<LOCAL%other.test@DOMAIN>', expect: /^550 5\.1\.1 / },
  { path: '<other.test!LOCAL@DOMAIN>', expect: /^550 5\.1\.1 / },
  { path: '<LOCAL@DOMAIN> NOTIFY=NEVER', expect: /^250 2\.1\.5 / },
  { path: '<LOCAL@DOMAIN> NOTIFY=SUCCESS,failure,DELAY ORCPT=rfc822;a+2Bb@x.test', expect: /^250 2\.1\.5 / },
  { path: '<LOCAL@DOMAIN> NOTIFY=ALWAYS', expect: /^501 5\.5\.4 / },
  { path: '<LOCAL@DOMAIN> NOTIFY=NEVER,SUCCESS', expect: /^501 5\.5\.4 / },
  { path: '<LOCAL@DOMAIN> ORCPT=a@x.test', expect: /^501 5\.5\.4 / },
  { path: '<LOCAL@DOMAIN> NOTIFY=NEVER notify=NEVER', expect: /^501 5\.5\.4 / },
  { path: '<LOCAL@DOMAIN> RET=FULL', expect: /^555 5\.5\.4 / },
  { path: '<LOCAL>', expect: /^501 5\.1\.3 / },
  { path: 'LOCAL@DOMAIN', expect: /^501 5\.1\.3 / },
  { path: '<LOCAL@DOMAIN><LOCAL@DOMAIN>', expect: /^501 5\.1\.3 / },
]

describe('the envelope', () => {
  it.each(SENDERS)('MAIL FROM:$path', async ({ path, expect: pattern }) => {
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask(`MAIL FROM:${path}`)).toMatch(pattern)
  })

  it.each(RECIPIENTS)('RCPT TO:$path', async ({ path, expect: pattern }) => {
    const client = await Dialogue.open(fixture.port)
    await client.address()
    const recipient = path.replaceAll('LOCAL', local).replaceAll('DOMAIN', domain)
    expect(await client.ask(`RCPT TO:${recipient}`)).toMatch(pattern)
  })

  it('keeps addresses as they were sent, and one recipient for one mailbox', async () => {
    const inbox = await fixture.createInbox()
    const [name = ''] = inbox.address.split('@')
    const client = await Dialogue.greeted(fixture.port)
    await client.ask(utf8('MAIL FROM:<@relay.test:"Grüße"@BÜCHER.test> SMTPUTF8'))
    await client.ask(`RCPT TO:<${inbox.address}>`)
    await client.ask(`RCPT TO:<@relay.test:"${name.toUpperCase()}"@MAYFLY.test>`)
    expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 2\.0\.0 msg_[0-9a-z]{26}$/)
    const [mail] = (await fixture.received()).filter(({ event }) => event.inboxId === inbox.id)
    expect(mail?.envelope).toMatchObject({
      mailFrom: '"Grüße"@BÜCHER.test',
      rcptTo: `"${name.toUpperCase()}"@MAYFLY.test`,
    })
  })
})

/** Each is sent on a new connection after EHLO. */
const LINES = [
  { name: 'a NUL', line: 'NO\0OP', expect: /^500 5\.5\.2 / },
  { name: 'a bare CR', line: 'NOOP\rRSET', expect: /^500 5\.5\.2 / },
  { name: 'a tab', line: 'NOOP\t', expect: /^500 5\.5\.2 / },
  { name: '8-bit characters', line: 'NOOP \xe4', expect: /^500 5\.5\.2 / },
  { name: 'a NUL in a host name', line: 'EHLO a\0.test', expect: /^500 5\.5\.2 / },
  { name: 'nothing', line: '', expect: /^500 5\.5\.2 / },
  { name: 'a leading space', line: ' NOOP', expect: /^500 5\.5\.2 / },
  { name: 'trailing spaces', line: 'NOOP   ', expect: /^250 / },
  { name: 'lower case', line: 'nOoP', expect: /^250 / },
  { name: '512 octets', line: `NOOP ${'x'.repeat(505)}`, expect: /^250 / },
  { name: '1,000 octets', line: `NOOP ${'x'.repeat(993)}`, expect: /^250 / },
  { name: '2,050 octets', line: `NOOP ${'x'.repeat(2_043)}`, expect: /^250 / },
  { name: '2,051 octets', line: `NOOP ${'x'.repeat(2_044)}`, expect: /^500 5\.5\.2 the command line/ },
  { name: 'an address literal as host name', line: 'EHLO [127.0.0.1]', expect: /^250-/ },
  { name: 'an IPv6 literal as host name', line: 'HELO [IPv6:2001:db8::1]', expect: /^250 / },
  { name: 'an address as host name', line: 'HELO 127.0.0.1', expect: /^250 / },
  { name: 'a host name of 300 octets', line: `EHLO ${'x'.repeat(300)}`, expect: /^250-/ },
  { name: 'a host name of 301 octets', line: `EHLO ${'x'.repeat(301)}`, expect: /^501 / },
  { name: 'two host names', line: 'EHLO a.test b.test', expect: /^501 / },
]

describe('a command line with', () => {
  it.each(LINES)('$name', async ({ line, expect: pattern }) => {
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask(line)).toMatch(pattern)
  })

  it('a bare LF at its end is refused, and later lines are read', async () => {
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    client.send('EHLO client.test\nNOOP\r\n')
    expect(await client.reply()).toMatch(/^500 5\.5\.2 .*CRLF/)
    expect(await client.reply()).toMatch(/^250 /)
  })

  it('too many octets ends the session, even if it comes in pieces after a mail', async () => {
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    const line = Buffer.from(`NOOP ${'x'.repeat(2_044)}\r\n`)
    // The pieces are buffered until the mail has been answered.
    await client.sendInPieces(['DATA\r\n.\r\nN', line.subarray(1, -1), '\nRSET\r\n'])
    expect(await client.reply()).toMatch(/^354 /)
    expect(await client.reply()).toMatch(/^250 /)
    expect(await client.rest()).toMatch(/^500 5\.5\.2 the command line is too long\r\n$/)
  })

  it('no line end is ignored when the connection ends', async () => {
    const inbox = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.address()
    client.socket.end(`RCPT TO:<${inbox.address}>`)
    expect(await client.rest()).toBe('')
  })
})

describe('a host name', () => {
  it.each([
    { sent: utf8('MÜLLER-PC.test'), helo: 'müller-pc.test' },
    { sent: utf8('приём.пример'), helo: 'приём.пример' },
    { sent: utf8('voilà'), helo: 'voilà' },
    { sent: 'M\xdcLLER-PC', helo: 'müller-pc' },
    { sent: utf8('a\u202eb\u0085c'), helo: 'a\ufffdb\ufffdc' },
  ])('may have non-ASCII characters: $helo', async ({ sent, helo }) => {
    const inbox = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    expect(await client.ask(`EHLO ${sent}`)).toMatch(/^250-/)
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${inbox.address}>`)
    expect(await client.data('Subject: x\r\n\r\n.\r\n')).toMatch(/^250 /)
    const [mail] = (await fixture.received()).filter(({ event }) => event.inboxId === inbox.id)
    expect(mail?.envelope.helo).toBe(helo)
  })
})

describe('BDAT', () => {
  it('is refused and ends the session, so that its bytes are not read as commands', async () => {
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    const before = (await fixture.received()).length
    const smuggled = `MAIL FROM:<evil@x.test>\r\nRCPT TO:<${address}>\r\nDATA\r\nx\r\n.\r\n`
    client.send(`BDAT ${smuggled.length} LAST\r\n${smuggled}`)
    expect(await client.rest()).toMatch(/^502 5\.5\.1 [^\r\n]*\r\n$/)
    expect(await fixture.received()).toHaveLength(before)
  })
})
