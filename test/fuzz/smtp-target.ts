import fc from 'fast-check'
import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import type { ReceivedMail } from '#test/smtp/logged-mail.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'
import { play, type PlayedSession } from './smtp-player.js'
import { NAMES, session, type FuzzSession } from './smtp-session.js'

/** Small limits, so that sessions reach them. */
const SETTINGS = {
  smtpTls: 'self-signed' as const,
  maxMessageBytes: 20_000,
  smtpMaxRecipients: 3,
  smtpMaxConnections: 50,
  smtpMaxConnectionsPerAddress: 50,
  smtpMaxIdleCommands: 40,
  smtpMaxErrors: 15,
  smtpMaxUnknownRecipients: 10,
  smtpMaxUnknownRecipientsPerAddress: 1_000_000_000,
  smtpUnknownRecipientDelayMs: 0,
  smtpMemoryBytes: 400_000,
}
const MAX_SESSIONS = 4
const MAX_GROWTH_BYTES = 512 * 1024 * 1024
/** After these runs the fixture is replaced, because its log keeps every mail. */
const RUNS_PER_FIXTURE = 2_000

export interface SmtpTarget {
  /** The property to check with random sessions. */
  readonly property: fc.IRawProperty<unknown>
  /** Rejects unless everything is well after the runs. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** The SMTP server on the embedded engine, with several hostile clients at once. */
export async function openSmtpTarget(): Promise<SmtpTarget> {
  let fixture = await SmtpFixture.started(SETTINGS)
  let slots = new Map<number, Slot>()
  const slotAt = (index: number) => {
    const slot = slots.get(index) ?? new Slot(fixture)
    slots.set(index, slot)
    return slot
  }
  let runs = 0
  const before = process.memoryUsage().rss
  const property = fc.asyncProperty(
    fc.array(session, { minLength: 1, maxLength: MAX_SESSIONS }),
    async (sessions) => {
      const played = await Promise.all(sessions.map((one, index) => slotAt(index).play(one)))
      const received = await fixture.newlyReceived()
      for (const one of played) compare(one, received)
      await answersOthers(fixture)
      runs += 1
    },
  )
  return {
    property,
    async settle() {
      await fixture.untilConnectionsAre(0)
      await hasAllItsMemory(fixture)
      const grown = process.memoryUsage().rss - before
      if (grown > MAX_GROWTH_BYTES) throw new Error(`grown by ${grown} bytes`)
      if (runs < RUNS_PER_FIXTURE) return
      runs = 0
      await fixture.close()
      fixture = await SmtpFixture.started(SETTINGS)
      slots = new Map()
    },
    close: () => fixture.close(),
  }
}

interface Played extends PlayedSession {
  inboxIds: ReadonlySet<InboxId>
}

type Inbox = Awaited<ReturnType<SmtpFixture['createInbox']>>

/** The inboxes of one session at a time, reused as long as no mail can arrive late. */
class Slot {
  private kept: [Inbox, Inbox] | null = null

  constructor(private readonly fixture: SmtpFixture) {}

  async play(given: FuzzSession): Promise<Played> {
    const { fixture } = this
    this.kept ??= [await fixture.createInbox(1_000_000), await fixture.createInbox(1_000_000)]
    const isSmallUsed = JSON.stringify(given).includes('<SMALL>')
    const inboxes = [...this.kept, ...(isSmallUsed ? [await fixture.createInbox(2)] : [])]
    const played = await play(fixture.port, addressed(given, inboxes), SETTINGS.maxMessageBytes)
    if (!played.isComplete) this.kept = null
    return { ...played, inboxIds: new Set(inboxes.map(({ id }) => id)) }
  }
}

function addressed(given: FuzzSession, inboxes: readonly { address: Address }[]): FuzzSession {
  const replaced = (text: string) =>
    NAMES.reduce((so, name, index) => so.replaceAll(`${name}>`, `${inboxes[index]?.address}>`), text)
  const { clear, tls } = given
  return {
    ...given,
    clear: replaced(clear),
    tls: tls === null ? null : { injected: replaced(tls.injected), secure: replaced(tls.secure) },
  }
}

/** Throws if a mail that was answered 250 is missing, or if there is one that was not. */
function compare({ mails, isComplete, inboxIds }: Played, received: readonly ReceivedMail[]): void {
  const own = received.filter(({ event }) => inboxIds.has(event.inboxId))
  const kept = new Map(own.map((mail) => [String(mail.event.messageId), mail]))
  for (const { ids, raw } of mails) {
    for (const id of ids) {
      const mail = kept.get(id)
      if (mail === undefined) throw new Error(`250 for ${id}, which is missing`)
      if (!mail.raw.equals(raw)) throw new Error(`${id} is not what was sent`)
      kept.delete(id)
    }
  }
  if (isComplete && kept.size > 0) throw new Error(`${kept.size} mails that were not answered 250`)
}

async function answersOthers(fixture: SmtpFixture): Promise<void> {
  const witness = await Dialogue.open(fixture.port)
  try {
    const greeting = await witness.reply()
    if (!greeting.startsWith('220 ')) throw new Error(`another client is greeted with ${greeting}`)
  } finally {
    witness.close()
  }
}

async function hasAllItsMemory(fixture: SmtpFixture): Promise<void> {
  const { address } = await fixture.createInbox()
  const clients = await Promise.all(
    // As many as fit into the memory, each of which reserves its declared size.
    Array.from({ length: 20 }, async () => {
      const client = await Dialogue.open(fixture.port, '127.0.0.1')
      await client.reply()
      for (const line of ['EHLO a.test', 'MAIL FROM:<> SIZE=15000', `RCPT TO:<${address}>`])
        await client.ask(line)
      return { client, reply: await client.ask('DATA') }
    }),
  )
  const refused = clients.find(({ reply }) => !reply.startsWith('354 '))
  for (const { client } of clients) client.close()
  if (refused !== undefined) throw new Error(`memory was not released: ${refused.reply}`)
  await fixture.untilConnectionsAre(0)
}
