import fc from 'fast-check'
import type { Address } from '#libs/domain/inbox/events.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import type { ReceivedMail } from '#test/smtp/logged-mail.js'
import { MailRoom } from '#test/smtp/mail-room.js'
import { play, type PlayedSession } from './smtp-player.js'
import { NAMES, session, type FuzzSession } from './smtp-session.js'

/** Small, so that the limits are met. */
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
/** Then the room is left for a new one: its log holds every mail. */
const RUNS_OF_ROOM = 2_000

export interface SmtpTarget {
  /** What to fuzz it with; fails if what must hold does not. */
  readonly property: fc.IRawProperty<unknown>
  /** What must hold once the runs are over; rejects if it does not. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** The SMTP edge on the embedded engine, with several clients at once that stop at nothing. */
export async function openSmtpTarget(): Promise<SmtpTarget> {
  let room = await MailRoom.started(SETTINGS)
  let slots = new Map<number, Slot>()
  const slotAt = (index: number) => {
    const slot = slots.get(index) ?? new Slot(room)
    slots.set(index, slot)
    return slot
  }
  let runs = 0
  const before = process.memoryUsage().rss
  const property = fc.asyncProperty(
    fc.array(session, { minLength: 1, maxLength: MAX_SESSIONS }),
    async (sessions) => {
      const played = await Promise.all(sessions.map((one, index) => slotAt(index).play(one)))
      const received = await room.newlyReceived()
      for (const one of played) compare(one, received)
      await answersOthers(room)
      runs += 1
    },
  )
  return {
    property,
    async settle() {
      await room.untilConnectionsAre(0)
      await hasAllItsMemory(room)
      const grown = process.memoryUsage().rss - before
      if (grown > MAX_GROWTH_BYTES) throw new Error(`grown by ${grown} bytes`)
      if (runs < RUNS_OF_ROOM) return
      runs = 0
      await room.close()
      room = await MailRoom.started(SETTINGS)
      slots = new Map()
    },
    close: () => room.close(),
  }
}

interface Played extends PlayedSession {
  inboxIds: ReadonlySet<InboxId>
}

type Inbox = Awaited<ReturnType<MailRoom['createInbox']>>

/** Where one session after the other delivers, its inboxes kept as long as nothing can come to them late. */
class Slot {
  private kept: [Inbox, Inbox] | null = null

  constructor(private readonly room: MailRoom) {}

  async play(given: FuzzSession): Promise<Played> {
    const { room } = this
    this.kept ??= [await room.createInbox(1_000_000), await room.createInbox(1_000_000)]
    const isSmallUsed = JSON.stringify(given).includes('<SMALL>')
    const inboxes = [...this.kept, ...(isSmallUsed ? [await room.createInbox(2)] : [])]
    const played = await play(room.port, addressed(given, inboxes), SETTINGS.maxMessageBytes)
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

/** Fails if a mail is missing that was answered with 250, or there is one that was not. */
function compare({ mails, isComplete, inboxIds }: Played, received: readonly ReceivedMail[]): void {
  const own = received.filter(({ event }) => inboxIds.has(event.inboxId))
  const kept = new Map(own.map((mail) => [String(mail.event.messageId), mail]))
  for (const { ids, raw } of mails) {
    for (const id of ids) {
      const mail = kept.get(id)
      if (mail === undefined) throw new Error(`250 for ${id}, which is not there`)
      if (!mail.raw.equals(raw)) throw new Error(`${id} is not what was sent`)
      kept.delete(id)
    }
  }
  if (isComplete && kept.size > 0) throw new Error(`${kept.size} mails that nobody was told of`)
}

async function answersOthers(room: MailRoom): Promise<void> {
  const witness = await Dialogue.open(room.port)
  try {
    const greeting = await witness.reply()
    if (!greeting.startsWith('220 ')) throw new Error(`another client is greeted with ${greeting}`)
  } finally {
    witness.close()
  }
}

async function hasAllItsMemory(room: MailRoom): Promise<void> {
  const { address } = await room.createInbox()
  const clients = await Promise.all(
    // As many as have room: the first bytes of each are those that it declared.
    Array.from({ length: 20 }, async () => {
      const client = await Dialogue.open(room.port, '127.0.0.1')
      await client.reply()
      for (const line of ['EHLO a.test', 'MAIL FROM:<> SIZE=15000', `RCPT TO:<${address}>`])
        await client.ask(line)
      return { client, reply: await client.ask('DATA') }
    }),
  )
  const refused = clients.find(({ reply }) => !reply.startsWith('354 '))
  for (const { client } of clients) client.close()
  if (refused !== undefined) throw new Error(`memory is held by nobody: ${refused.reply}`)
  await room.untilConnectionsAre(0)
}
