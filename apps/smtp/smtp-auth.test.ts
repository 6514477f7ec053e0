import { createTransport } from 'nodemailer'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
const MAIL = 'Subject: x\r\n\r\nbody\r\n.\r\n'
const base64 = (text: string) => Buffer.from(text).toString('base64')
const BEARER = base64('n,a=u@x.test,\x01host=localhost\x01port=25\x01auth=Bearer t\x01\x01')

afterEach(() => SmtpFixture.closeAll())

describe('AUTH', () => {
  it.each([
    { name: 'PLAIN with an initial response', lines: [`AUTH PLAIN ${base64('\0user\0secret')}`] },
    { name: 'PLAIN without an initial response', lines: ['AUTH PLAIN', base64('\0user\0secret')] },
    { name: 'LOGIN', lines: ['AUTH LOGIN', base64('user'), base64('secret')] },
    { name: 'LOGIN with an initial response', lines: [`AUTH LOGIN ${base64('user')}`, base64('secret')] },
    { name: 'an empty username', lines: ['AUTH LOGIN', '', base64('secret')] },
    { name: 'an empty initial response', lines: ['AUTH LOGIN =', base64('secret')] },
    { name: 'a username with a tab', lines: [`AUTH PLAIN ${base64('\0u\tx\0secret')}`] },
    { name: 'an empty password', lines: ['AUTH LOGIN', base64('user'), ''] },
    { name: 'a response that reads like a command', lines: ['AUTH LOGIN', base64('user'), 'BDAT'] },
    { name: 'XOAUTH2', lines: [`AUTH XOAUTH2 ${base64('user=u@x.test\x01auth=Bearer t\x01\x01')}`] },
    {
      name: 'XOAUTH2 without an initial response',
      lines: ['auth xoauth2', base64('user=u@x.test\x01auth=Bearer t\x01\x01')],
    },
    { name: 'OAUTHBEARER', lines: [`AUTH OAUTHBEARER ${BEARER}`] },
    { name: 'OAUTHBEARER without an initial response', lines: ['AUTH OAUTHBEARER', BEARER] },
    { name: 'a line of 12,288 octets', lines: [`AUTH PLAIN ${base64('\0u\0').padEnd(12_277, 'B')}`] },
    { name: 'a response of 12,288 octets', lines: ['AUTH PLAIN', base64('\0u\0').padEnd(12_288, 'B')] },
  ])('accepts any credentials on loopback: $name', async ({ lines }) => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    const replies: string[] = []
    for (const line of lines) replies.push(await client.ask(line))
    expect(replies.at(-1)).toMatch(/^235 2\.7\.0 /)
    expect(replies.slice(0, -1).filter((reply) => !reply.startsWith('334'))).toEqual([])
    expect(await client.ask('AUTH PLAIN AGEAYg==')).toMatch(/^503 /)
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${address}>`)
    expect(await client.data(MAIL)).toMatch(/^250 /)
  })

  it.each([
    { name: 'an exchange that the client cancels', lines: ['AUTH LOGIN', '*'], expected: /^501 / },
    { name: 'missing credentials', lines: ['AUTH PLAIN', 'AA=='], expected: /^501 / },
    { name: 'another mechanism', lines: ['AUTH CRAM-MD5'], expected: /^504 / },
    { name: 'a missing token', lines: [`AUTH XOAUTH2 ${base64('user=u\x01\x01')}`], expected: /^501 / },
    { name: 'an empty response', lines: ['AUTH OAUTHBEARER ='], expected: /^501 / },
    { name: 'words after a response', lines: [`AUTH OAUTHBEARER ${BEARER} x`], expected: /^501 5\.5\.4 / },
  ])('refuses $name and continues', async ({ lines, expected }) => {
    fixture = await SmtpFixture.started()
    const client = await Dialogue.greeted(fixture.port)
    let last = ''
    for (const line of lines) last = await client.ask(line)
    expect(last).toMatch(expected)
    expect(await client.ask('NOOP')).toMatch(/^250 /)
  })

  it.each([
    { name: 'an AUTH command', lines: [`AUTH PLAIN ${'A'.repeat(12_280)}`] },
    { name: 'a response', lines: ['AUTH PLAIN', 'A'.repeat(12_291)] },
    { name: 'another command', lines: [`NOOP ${'x'.repeat(2_046)}`] },
  ])('ends the session after $name that is too long', async ({ lines }) => {
    fixture = await SmtpFixture.started()
    const client = await Dialogue.greeted(fixture.port)
    for (const line of lines) client.send(`${line}\r\n`)
    expect(await client.rest()).toMatch(/500 5\.5\.2 the command line is too long\r\n$/)
  })

  it('accepts a token of OAuth from Nodemailer', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const auth = { type: 'OAuth2' as const, user: 'u@x.test', accessToken: 't'.repeat(3_000) }
    const mailer = createTransport({ host: '127.0.0.1', port: fixture.port, auth })
    const { response } = await mailer.sendMail({ from: 'a@x.test', to: address, text: 'x' })
    mailer.close()
    expect(response).toMatch(/^250 2\.0\.0 msg_/)
  })

  it('allows the AUTH parameter of MAIL FROM, which is ignored', async () => {
    fixture = await SmtpFixture.started()
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask('MAIL FROM:<a@x.test> AUTH=<>')).toMatch(/^250 /)
    await client.ask('RSET')
    expect(await client.ask('MAIL FROM:<a@x.test> AUTH=b+40x.test')).toMatch(/^250 /)
    await client.ask('RSET')
    expect(await client.ask('MAIL FROM:<a@x.test> AUTH')).toMatch(/^501 5\.5\.4 /)
  })

  it('never writes credentials to the log', async () => {
    fixture = await SmtpFixture.started()
    const client = await Dialogue.greeted(fixture.port)
    await client.ask(`AUTH PLAIN ${base64('\0a-user-name\0a-password')}`)
    const other = await Dialogue.greeted(fixture.port)
    await other.ask('AUTH LOGIN')
    await other.ask(base64('a-user-name'))
    await other.ask(`${base64('a-password')} trailing`)
    await other.ask('AUTH PLAIN a-password')
    const log = JSON.stringify(fixture.logLines)
    for (const text of ['a-user-name', 'a-password', '\0a-user-name\0a-password']) {
      expect(log).not.toContain(text)
      expect(log).not.toContain(base64(text).replace(/=+$/, ''))
    }
  })

  it.each([
    { name: 'off loopback by default', settings: { smtpHost: '0.0.0.0' } },
    { name: 'if it is set to off', settings: { smtpAuth: 'off' as const } },
  ])('is not offered $name', async ({ settings }) => {
    fixture = await SmtpFixture.started(settings)
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    expect(await client.ask('EHLO client.test')).not.toContain('AUTH')
    expect(await client.ask('AUTH LOGIN')).toMatch(/^502 5\.5\.1 /)
    expect(await client.ask('MAIL FROM:<a@x.test> AUTH=<>')).toMatch(/^555 5\.5\.4 /)
  })

  it('with keys is offered without TLS on loopback only', async () => {
    fixture = await SmtpFixture.started({
      smtpAuth: 'key',
      smtpTls: 'self-signed',
      smtpProxyFrom: ['127.0.0.1'],
    })
    const remote = await Dialogue.open(fixture.port)
    remote.send('PROXY TCP4 203.0.113.7 192.0.2.1 1234 25\r\n')
    await remote.reply()
    expect(await remote.ask('EHLO client.test')).not.toContain('AUTH')
    expect(await remote.ask(`AUTH PLAIN ${base64('\0u\0p')}`)).toMatch(/^538 5\.7\.11 /)
    const local = await Dialogue.open(fixture.port)
    local.send('PROXY TCP4 127.0.0.1 127.0.0.1 1234 25\r\n')
    await local.reply()
    expect(await local.ask('EHLO client.test')).toMatch(/AUTH PLAIN LOGIN$/m)
    expect(await local.ask(`AUTH OAUTHBEARER ${BEARER}`)).toMatch(/^504 /)
    local.send(`AUTH PLAIN ${'A'.repeat(3_000)}\r\n`)
    expect(await local.rest()).toMatch(/^500 5\.5\.2 the command line is too long/)
  })

  it('with keys refuses invalid passwords, and ends the session after too many', async () => {
    fixture = await SmtpFixture.started({ smtpAuth: 'key', smtpMaxErrors: 5 })
    await fixture.trackAccounts()
    const client = await Dialogue.greeted(fixture.port)
    const replies: string[] = []
    for (let i = 0; i < 5; i += 1) replies.push(await client.ask(`AUTH PLAIN ${base64(`\0u\0guess-${i}`)}`))
    expect(replies.slice(0, 4).every((reply) => /^535 5\.7\.8 /.test(reply))).toBe(true)
    expect(replies.at(-1)).toMatch(/^421 /)
  })

  it('with keys answers with a temporary error while keys may be missing from the views', async () => {
    fixture = await SmtpFixture.open({ smtpAuth: 'key' }, ['inbox-events'])
    await fixture.start()
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask(`AUTH PLAIN ${base64('\0u\0p')}`)).toMatch(/^454 4\.7\.0 /)
  })
})
