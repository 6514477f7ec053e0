import { createTransport } from 'nodemailer'
import { withKey, issueKey, openAccount, type KeyJson, type NewKeyJson } from '#test/harness/accounts.js'
import { call, createInbox, mail, messagesOf, type InboxJson, type Target } from '#test/harness/client.js'
import { join } from '#test/harness/members.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { until } from '#test/harness/until.js'
import { untilCounted, usageOf } from '#test/harness/usage.js'
import { Dialogue } from '#test/smtp/dialogue.js'

describe('MAYFLY_SMTP_AUTH=key', () => {
  let mayfly: Mayfly
  let admin: Target
  let owner: NewKeyJson
  let inbox: InboxJson

  beforeAll(async () => {
    mayfly = await startMayfly({ hasAnalytics: true, env: { MAYFLY_SMTP_AUTH: 'key' } })
  })
  beforeEach(async () => {
    admin = withKey(mayfly, (await openAccount(mayfly)).key)
    owner = await issueKey(admin)
    inbox = await createInbox(withKey(mayfly, owner))
  })
  afterEach(() => Dialogue.closeAll())
  afterAll(() => mayfly.dispose())

  async function sendWith(secret: string, subject = 'x'): Promise<void> {
    const mailer = createTransport({
      host: '127.0.0.1',
      port: mayfly.smtpPort,
      auth: { user: 'api', pass: secret },
    })
    await mailer.sendMail({ from: 'a@example.com', to: inbox.address, subject, text: 'x' })
    mailer.close()
  }

  async function mailsByKey(): Promise<Map<string | null, number>> {
    const rows = await usageOf(admin, { group_by: 'key' })
    return new Map(rows.flatMap(({ group, mails }) => (mails > 0 ? [[group, mails]] : [])))
  }

  async function sendersInHistory(): Promise<(string | null)[]> {
    const path = `/v1/inboxes/${inbox.id}/history`
    const { body } = await call<{ type: string; key_id: string | null }[]>(
      withKey(mayfly, owner),
      'GET',
      path,
    )
    return body.filter(({ type }) => type === 'message.received').map((event) => event.key_id)
  }

  it('counts mail for the key that sent it, within its account and environment', async () => {
    const sender = await issueKey(admin)
    const elsewhere = await issueKey(admin, { environment: 'production' })
    const { key: stranger } = await openAccount(mayfly)
    for (const { secret } of [sender, elsewhere, stranger ?? owner]) await sendWith(secret)
    await messagesOf(withKey(mayfly, owner), inbox.id, 3)

    const counted = await untilCounted(
      mailsByKey,
      (mails) => [...mails.values()].reduce((a, b) => a + b, 0) === 3,
    )
    expect(Object.fromEntries(counted)).toEqual({ [sender.id]: 1, [owner.id]: 2 })
    expect(await sendersInHistory()).toEqual([sender.id, null, null])
    const used = await until('the use to be stored', async () => {
      const { body } = await call<KeyJson>(admin, 'GET', `/v1/keys/${elsewhere.id}`)
      return body.last_used_at
    })
    expect(Date.parse(used)).toBeGreaterThanOrEqual(Date.parse(elsewhere.created_at))
  })

  it('refuses a personal key without the environment, and after the membership', async () => {
    const { member, target } = await join(admin, { role: 'developer' })
    const body = { name: 'mine', environment: 'staging', owner: 'personal' }
    const { body: key } = await call<NewKeyJson>(target, 'POST', '/v1/keys', { body })
    await sendWith(key.secret)
    const path = `/v1/members/${member.id}`
    const isRefused = () =>
      sendWith(key.secret).then(
        () => false,
        (error: unknown) => String(error).includes('535'),
      )
    await call(admin, 'PATCH', path, { body: { environments: ['elsewhere'] } })
    await until('the key to be refused', isRefused)
    await call(admin, 'PATCH', path, { body: { environments: null } })
    await until('the key to be accepted', async () => !(await isRefused()))
    await call(admin, 'DELETE', path)
    await until('the key to be refused', isRefused)
  })

  it('stays optional', async () => {
    const client = await Dialogue.open(mayfly.smtpPort)
    expect(await client.address(inbox.address)).toMatch(/^250 /)
    expect(await client.data(`${mail('no AUTH')}\r\n.\r\n`)).toMatch(/^250 /)
  })

  it('refuses a password that is not a valid key: unknown, mistyped or revoked', async () => {
    const revoked = await issueKey(admin)
    await call(admin, 'DELETE', `/v1/keys/${revoked.id}`)
    const mistyped = owner.secret.replace(/.$/, (last) => (last === '0' ? '1' : '0'))
    const other = await openAccount(mayfly)
    await call(mayfly, 'POST', `/v1/accounts/${other.id}/suspend`)
    for (const secret of ['secret', mistyped, revoked.secret, withKey(mayfly, other.key).apiKey]) {
      await expect(sendWith(secret)).rejects.toMatchObject({ code: 'EAUTH', responseCode: 535 })
    }
  })

  it('does not count mail for a key that was revoked, even in an open session', async () => {
    const sender = await issueKey(admin)
    const client = await Dialogue.greeted(mayfly.smtpPort)
    const credentials = Buffer.from(`\0api\0${sender.secret}`).toString('base64')
    expect(await client.ask(`AUTH PLAIN ${credentials}`)).toMatch(/^235 /)
    const deliver = async () => {
      await client.ask('MAIL FROM:<a@example.com>')
      await client.ask(`RCPT TO:<${inbox.address}>`)
      return client.data(`${mail('x')}\r\n.\r\n`)
    }
    expect(await deliver()).toMatch(/^250 /)
    await call(admin, 'DELETE', `/v1/keys/${sender.id}`)
    expect(await deliver()).toMatch(/^250 /)
    await messagesOf(withKey(mayfly, owner), inbox.id, 2)
    expect(await sendersInHistory()).toEqual([sender.id, null])
  })
})
