import { mintId } from '#libs/domain/ids/mint.js'
import { until } from '#test/harness/until.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
const MAIL = 'Subject: x\r\n\r\nbody\r\n.\r\n'

afterEach(() => SmtpFixture.closeAll())

async function deliver(recipients: string[], wire: string | Buffer = MAIL): Promise<string> {
  const client = await Dialogue.open(fixture.port)
  const last = await client.address(...recipients)
  const reply = last.startsWith('250') ? await client.data(wire) : last
  client.close()
  return reply
}

describe('SMTP refusals', () => {
  it('refuse mail for an inbox that is full, deleted or expired', async () => {
    fixture = await SmtpFixture.started()
    const full = await fixture.createInbox(1)
    expect(await deliver([full.address])).toMatch(/^250 /)
    await fixture.project()
    expect(await deliver([full.address])).toMatch(/^552 5\.2\.2 /)

    const deleted = await fixture.createInbox()
    await fixture.record({
      type: 'InboxDeleted',
      inboxId: deleted.id,
      keyId: mintId('key'),
      deletedAt: fixture.now(),
      inbox: null,
    })
    await fixture.project()
    const deletedAt = fixture.now().toISOString()
    expect(await deliver([deleted.address])).toBe(`550 5.1.1 this inbox was deleted at ${deletedAt}`)

    const expiring = await fixture.createInbox()
    const expiresAt = new Date(fixture.now().getTime() + 3_600_000).toISOString()
    fixture.advance(3_600_000)
    expect(await deliver([expiring.address])).toBe(`550 5.1.1 this inbox expired at ${expiresAt}`)
    expect(await deliver(['00000000000000000000@mayfly.test'])).toBe('550 5.1.1 no inbox has this address')
    expect(await fixture.received()).toHaveLength(1)
  })

  it('let concurrent mails fill an inbox exactly', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox(3)
    const replies = await Promise.all(Array.from({ length: 10 }, () => deliver([address])))
    const accepted = replies.filter((reply) => reply.startsWith('250 '))
    expect(accepted).toHaveLength(3)
    for (const reply of replies) expect(reply).toMatch(/^(250 2\.0\.0|552 5\.2\.2) /)
    expect(await deliver([address])).toMatch(/^552 5\.2\.2 /)
    expect(await fixture.received()).toHaveLength(3)
    await fixture.project()
    expect(await deliver([address])).toMatch(/^552 5\.2\.2 /)
  })

  it('refuse a mail for two tags of an inbox unless both copies fit', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox(1)
    const names = ['a', 'b'].map((tag) => address.replace('@', `+${tag}@`))
    expect(await deliver(names)).toMatch(/^552 5\.2\.2 /)
    expect(await deliver([address])).toMatch(/^250 /)
    expect(await fixture.received()).toHaveLength(1)
  })

  it('release the capacity that a refused mail had reserved', async () => {
    fixture = await SmtpFixture.started()
    const [one, full] = [await fixture.createInbox(2), await fixture.createInbox(1)]
    const both = await Dialogue.open(fixture.port)
    await both.address(one.address, full.address)
    expect(await deliver([full.address])).toMatch(/^250 /)
    // Refused because of the full inbox, so its reservation in the other inbox is released.
    expect(await both.data(MAIL)).toMatch(/^451 4\.3\.0 a recipient changed/)
    expect(await deliver([one.address])).toMatch(/^250 /)
    await fixture.project()
    expect(await deliver([one.address])).toMatch(/^250 /)
    expect(await deliver([one.address])).toMatch(/^552 5\.2\.2 /)
  })

  it('are decided again at the end of DATA, for an inbox that has ended meanwhile', async () => {
    fixture = await SmtpFixture.started()
    const [one, other] = [await fixture.createInbox(), await fixture.createInbox()]
    const alone = await Dialogue.open(fixture.port)
    await alone.address(one.address)
    const both = await Dialogue.open(fixture.port)
    await both.address(one.address, other.address)
    await fixture.vault.forget([one.id])
    expect(await alone.data(MAIL)).toMatch(/^550 5\.1\.1 /)
    expect(await both.data(MAIL)).toMatch(/^451 4\.3\.0 a recipient changed/)
    expect(await fixture.received()).toEqual([])
  })

  it('are temporary for unknown recipients while the views catch up', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const { logId, partitions } = await fixture.log.topology('inbox-events')
    const [range] = partitions
    if (range === undefined) throw new Error('no partition')
    await fixture.views.store.begin(logId, { ...range, end: range.end + 5 })
    expect(await deliver(['00000000000000000000@mayfly.test'])).toMatch(/^451 4\.3\.0 /)
    expect(await deliver([address])).toMatch(/^250 /)
  })

  it('are not listed while it is unknown who the recipient belongs to', async () => {
    fixture = await SmtpFixture.started()
    let listed = ''
    await fixture.signals.subscribe('refused-mail', (message) => (listed += message))
    const { id, address } = await fixture.createInbox()
    const row = await fixture.views.queries.inbox(id)
    fixture.advance(3_600_000)
    const { logId, partitions } = await fixture.log.topology('inbox-events')
    for (const range of partitions) await fixture.views.store.begin(logId, { ...range, end: range.end + 5 })
    expect(await deliver(['00000000000000000000@mayfly.test'])).toMatch(/^451 4\.3\.0 /)
    expect(await deliver([address])).toMatch(/^550 5\.1\.1 this inbox expired/)
    await until('the list', () => listed !== '')
    expect(JSON.parse(listed)).toEqual([
      expect.objectContaining({ accountId: row?.inbox.accountId, recipient: address, code: 550 }),
    ])
  })

  it('are temporary while the views are too far behind', async () => {
    fixture = await SmtpFixture.started({ maxBacklog: 2 })
    const { address } = await fixture.createInbox()
    for (let i = 0; i < 3; i += 1) {
      await fixture.record({
        type: 'InboxExpired',
        inboxId: mintId('inb'),
        expiredAt: fixture.now(),
        inbox: null,
      })
    }
    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask('MAIL FROM:<a@x.test>')).toMatch(/^451 4\.3\.0 /)
    await fixture.project()
    await until('mail to be accepted', async () =>
      (await client.ask('MAIL FROM:<a@x.test>')).startsWith('250'),
    )
    expect(await client.ask(`RCPT TO:<${address}>`)).toMatch(/^250/)
  })

  it('answer 552 at the end of a mail that is too large, and keep the session', async () => {
    fixture = await SmtpFixture.started({ maxMessageBytes: 50_000 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.greeted(fixture.port)
    for (const parameter of ['', ' SIZE=10']) {
      await client.ask(`MAIL FROM:<a@x.test>${parameter}`)
      await client.ask(`RCPT TO:<${address}>`)
      expect(await client.data(`${'x'.repeat(80_000)}\r\n.\r\n`)).toMatch(/^552 5\.3\.4 /)
    }
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${address}>`)
    expect(await client.data(`${'x'.repeat(49_998)}\r\n.\r\n`)).toMatch(/^250 /)
    expect(await fixture.received()).toHaveLength(1)
  })

  it('are temporary while memory is full', async () => {
    fixture = await SmtpFixture.started({ maxMessageBytes: 80_000, smtpMemoryBytes: 100_000 })
    const { address } = await fixture.createInbox()
    const holder = await Dialogue.greeted(fixture.port)
    await holder.ask('MAIL FROM:<a@x.test> SIZE=70000')
    await holder.ask(`RCPT TO:<${address}>`)
    expect(await holder.ask('DATA')).toMatch(/^354/)

    const client = await Dialogue.greeted(fixture.port)
    expect(await client.ask('MAIL FROM:<a@x.test> SIZE=40000')).toMatch(/^451 4\.3\.1 /)
    await client.ask('MAIL FROM:<a@x.test>')
    await client.ask(`RCPT TO:<${address}>`)
    expect(await client.data(`${'x'.repeat(60_000)}\r\n.\r\n`)).toMatch(/^451 4\.3\.1 /)
    holder.close()
    await until('mail to be accepted', async () =>
      (await client.ask('MAIL FROM:<a@x.test> SIZE=40000')).startsWith('250'),
    )
  })

  it.each(['\n.\n', '\r.\r', '\r\n.\n', '\n.\r\n', '\r\n.\r'])(
    'refuse a mail with %j, and do not run commands smuggled after it',
    async (sequence) => {
      fixture = await SmtpFixture.started()
      const { address } = await fixture.createInbox()
      const smuggled = `MAIL FROM:<evil@x.test>\r\nRCPT TO:<${address}>\r\nDATA\r\nsmuggled\r\n.\r\n`
      const client = await Dialogue.open(fixture.port)
      await client.address(address)
      expect(await client.data(`body${sequence}${smuggled}NOOP\r\n`)).toMatch(/^554 5\.6\.0 /)
      expect(await client.reply()).toMatch(/^250 2\.0\.0 OK/)
      expect(await fixture.received()).toEqual([])
    },
  )

  it.each([
    ['.\r\n', ''],
    ['\r\n.\r\n', '\r\n'],
    ['..\r\n...x\r\n.y\r\nno dot.\r\n.\r\n', '.\r\n..x\r\ny\r\nno dot.\r\n'],
    ['8 bit: \xe4\xff\x00\r\n.\r\n', '8 bit: \xe4\xff\x00\r\n'],
  ])('do not apply to %j, which is kept byte for byte', async (wire, raw) => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    expect(await deliver([address], Buffer.from(wire, 'latin1'))).toMatch(/^250 /)
    expect((await fixture.received()).map((mail) => mail.raw.toString('latin1'))).toEqual([raw])
  })

  it('are temporary while the log is unavailable', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    await fixture.log.close()
    expect(await client.data(MAIL)).toMatch(/^451 4\.3\.0 /)
    expect(await fixture.metric('mayfly_mails_accepted_total')).toBe(0)
    expect(fixture.logLines).toContainEqual(expect.objectContaining({ reason: 'log-unavailable', code: 451 }))
  })
})

describe('recipients of other domains', () => {
  const FOREIGN = 'support@company.test'
  const discarded = () => fixture.metric('mayfly_recipients_discarded_total')

  it('are refused by default, and the reply names the accepted domain', async () => {
    fixture = await SmtpFixture.started()
    expect(await deliver([FOREIGN])).toMatch(
      /^550 5\.1\.1 .* accepts mail for mayfly\.test only, and domains of its accounts$/,
    )
  })

  it('are accepted and dropped if configured, and inboxes still get the mail', async () => {
    fixture = await SmtpFixture.started({ unknownRecipients: 'discard' })
    const { address } = await fixture.createInbox()
    expect(await deliver([FOREIGN, address, 'Support@Company.test', 'other@company.test'])).toMatch(
      /^250 2\.0\.0 msg_/,
    )
    const [mail, ...others] = await fixture.received()
    expect(others).toEqual([])
    expect(mail?.envelope.rcptTo).toBe(address)
    expect(await discarded()).toBe(2)

    expect(await deliver([FOREIGN])).toMatch(/^250 2\.0\.0 discarded/)
    expect(await fixture.received()).toHaveLength(1)
    expect(await discarded()).toBe(3)
    expect(await fixture.metric('mayfly_mails_accepted_total')).toBe(1)
    expect(JSON.stringify(fixture.logLines)).not.toContain('company')
  })

  it.each([
    'nobody@mayfly.test',
    '00000000000000000000@mayfly.test',
    'nobody@MAYFLY.TEST',
    'nobody@sub.mayfly.test',
    'nobody@[127.0.0.1]',
    'postmaster',
  ])('do not include %s, so that a typo is refused', async (recipient) => {
    fixture = await SmtpFixture.started({ unknownRecipients: 'discard' })
    expect(await deliver([recipient])).toMatch(/^550 5\.1\.1 /)
  })

  it.each(['nobody@ｍayfly.test', 'nobody@mayfly。test'])(
    'do not include %s, which normalizes to our domain',
    async (recipient) => {
      fixture = await SmtpFixture.started({ unknownRecipients: 'discard' })
      const client = await Dialogue.greeted(fixture.port)
      await client.ask('MAIL FROM:<a@x.test> SMTPUTF8')
      client.send(Buffer.from(`RCPT TO:<${recipient}>\r\n`))
      expect(await client.reply()).toMatch(/^5\d\d /)
    },
  )

  it('include an address that needs quotes, which makes no inbox', async () => {
    const quoted = '"a b"@other.example'
    fixture = await SmtpFixture.started({ unknownRecipients: 'discard' })
    expect(await deliver([quoted])).toMatch(/^250 2\.0\.0 discarded/)
    await fixture.close()
    fixture = await SmtpFixture.started({ unknownRecipients: 'create' })
    expect(await deliver([quoted])).toMatch(/^550 5\.1\.1 /)
  })

  it('do not include an inbox that has ended', async () => {
    fixture = await SmtpFixture.started({ unknownRecipients: 'discard' })
    const { address } = await fixture.createInbox()
    fixture.advance(3_600_000)
    expect(await deliver([address])).toMatch(/^550 5\.1\.1 this inbox expired at /)
  })

  it('are dropped for clients on loopback and in the listed networks only', async () => {
    const smtpProxyFrom = ['127.0.0.1']
    fixture = await SmtpFixture.started({
      unknownRecipients: 'discard',
      discardFrom: ['203.0.113.0/24'],
      smtpProxyFrom,
    })
    const from = async (address: string) => {
      const client = await Dialogue.open(fixture.port)
      client.send(`PROXY TCP4 ${address} 192.0.2.1 1234 25\r\n`)
      return client.address(FOREIGN)
    }
    expect(await from('203.0.113.9')).toMatch(/^250 /)
    expect(await from('127.0.0.1')).toMatch(/^250 /)
    expect(await from('198.51.100.9')).toMatch(/^550 5\.1\.1 /)
  })

  it('count towards the recipient and size limits, and do not offset guesses', async () => {
    const limits = { smtpMaxRecipients: 3, smtpMaxUnknownRecipients: 5, smtpUnknownRecipientDelayMs: 0 }
    fixture = await SmtpFixture.started({ unknownRecipients: 'discard', maxMessageBytes: 2_000, ...limits })
    const client = await Dialogue.greeted(fixture.port)
    await client.ask('MAIL FROM:<a@x.test>')
    for (const local of ['a', 'b', 'c'])
      expect(await client.ask(`RCPT TO:<${local}@y.test>`)).toMatch(/^250 /)
    expect(await client.ask('RCPT TO:<d@y.test>')).toMatch(/^452 4\.5\.3 /)
    expect(await client.ask('RCPT TO:<A@y.test>')).toMatch(/^250 /)
    expect(await client.data(`${'x'.repeat(3_000)}\r\n.\r\n`)).toMatch(/^552 5\.3\.4 /)
    await client.ask('MAIL FROM:<a@x.test>')
    const replies: string[] = []
    for (let i = 0; i < 6; i += 1) {
      await client.ask('RCPT TO:<a@y.test>')
      replies.push(await client.ask(`RCPT TO:<${String(i).padStart(20, '0')}@mayfly.test>`))
    }
    expect(replies.at(-1)).toMatch(/^421 /)
  })
})
