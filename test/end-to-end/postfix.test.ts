import { createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { startPostfixRelay, type PostfixRelay } from '#test/harness/postfix-relay.js'
import { describeWith } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'
import { openWire, type Wire } from '#test/harness/wire.js'

const LARGEST_BYTES = 400_000
/** The memory for mail. Four mails use it up, because each reserves DECLARED_BYTES. */
const MEMORY_BYTES = 1_048_576
const DECLARED_BYTES = MEMORY_BYTES / 4
const WITHIN_MS = 60_000

describeWith('postfix')('Postfix as a relay', () => {
  let mayfly: Mayfly
  let relay: PostfixRelay | null = null
  let postfix: PostfixRelay
  let inbox: InboxJson

  beforeAll(async () => {
    const env = {
      MAYFLY_SMTP_TLS: 'self-signed',
      MAYFLY_MAX_MESSAGE_BYTES: String(LARGEST_BYTES),
      MAYFLY_SMTP_MEMORY_BYTES: String(MEMORY_BYTES),
      MAYFLY_SMTP_MEMORY_PERCENT_PER_ADDRESS: '100',
    }
    mayfly = await startMayfly({ isOneProcess: true, env })
    postfix = relay = await startPostfixRelay(mayfly.smtpPort)
  })
  beforeEach(async () => {
    inbox = await createInbox(mayfly)
  })
  afterAll(async () => {
    await relay?.stop()
    await mayfly.dispose()
  })

  async function logged(pattern: RegExp): Promise<void> {
    await until(`${pattern} in Postfix's log`, async () => pattern.test(await postfix.log()), WITHIN_MS)
  }

  it('delivers mail of a local program over TLS', async () => {
    const source = mail('by sendmail', '.a line with a dot\r\n..and two\r\n')
    await postfix.submit({
      from: 'sender@example.com',
      to: [inbox.address],
      source: source.replaceAll('\r\n', '\n'),
    })
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    expect(message).toMatchObject({
      subject: 'by sendmail',
      text: expect.stringContaining('.a line with a dot\n..and two') as string,
      envelope: {
        mail_from: 'sender@example.com',
        rcpt_to: inbox.address,
        helo: 'relay.example',
        tls: { version: 'TLSv1.3' },
      },
    })
  })

  it('relays mail that it gets over SMTP to each recipient', async () => {
    const other = await createInbox(mayfly)
    await send({ ...mayfly, smtpPort: postfix.port }, [inbox.address, other.address], mail('by SMTP'))
    for (const { id, address } of [inbox, other]) {
      const [message] = await messagesOf(mayfly, id, 1)
      expect(message).toMatchObject({ subject: 'by SMTP', envelope: { rcpt_to: address } })
      expect(message).not.toMatchObject({ envelope: { tls: null } })
    }
  })

  it('returns mail without an inbox to its sender', async () => {
    const unknown = inbox.address.replace(/^.{4}/, '0000')
    await postfix.submit({ from: inbox.address, to: [unknown], source: mail('returned') })
    await logged(
      /status=bounced \(host 127\.0\.0\.1\[127\.0\.0\.1\] said: 550 5\.1\.1 no inbox has this address/,
    )
    const [message] = await messagesOf(mayfly, inbox.id, 1)
    expect(message).toMatchObject({
      envelope: { mail_from: '' },
      text: expect.stringContaining(unknown) as string,
    })
  })

  it('keeps temporarily refused mail, and delivers it later', async () => {
    const held = await Promise.all(Array.from({ length: 4 }, () => holdMemory()))
    await postfix.submit({ from: 'sender@example.com', to: [inbox.address], source: mail('kept') })
    await logged(/status=deferred \(host 127\.0\.0\.1\[127\.0\.0\.1\] said: 451 4\.3\.1 /)
    for (const wire of held) wire.close()
    await until(
      'the mail',
      async () => {
        await postfix.flush()
        const { length } = await messagesOf(mayfly, inbox.id, 0)
        return length === 1
      },
      WITHIN_MS,
    )
  })

  /** Starts a mail that is not finished. */
  async function holdMemory(): Promise<Wire> {
    const wire = await openWire(mayfly.smtpPort)
    const says = (text: string) => until(text, () => wire.received().includes(text))
    await says('220 ')
    wire.write(
      `EHLO holder.example\r\nMAIL FROM:<> SIZE=${DECLARED_BYTES}\r\nRCPT TO:<${inbox.address}>\r\nDATA\r\n`,
    )
    await says('354 ')
    return wire
  }
})
