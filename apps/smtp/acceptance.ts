import { hash } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { packSource, sealMail, type PackedSource } from '#libs/ports/key-vault/content.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { SecretKey } from '#libs/ports/key-vault/seal.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import type { Recorder } from '#libs/ports/event-log/codecs.js'
import { decide } from '#libs/domain/inbox/decide.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Envelope } from '#libs/mail/message.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'
import { InboxRoom, type Place } from './inbox-room.js'
import type { Authenticator } from './authenticator.js'
import { identityOf, type MailUsage } from './mail-usage.js'
import { refusalOf } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'
import type { UnshownMail } from './unshown-mail.js'

export interface Recipient {
  /** As it was at RCPT TO. */
  inbox: Inbox
  rcptTo: string
}

export interface IncomingMail {
  raw: Buffer
  trace: Omit<Envelope, 'rcptTo'>
  recipients: readonly Recipient[]
  /** Null if the client did not authenticate with an API key. */
  senderKey: SenderKey | null
  /** On the clock of `performance.now()`: until then what is missing is tried again. */
  deadlineMs: number
  /** Aborts when the client has left. */
  departure: AbortSignal
}

export interface AcceptanceOptions {
  vault: Pick<KeyVault, 'find'>
  inboxes: Pick<InboxQueries, 'inbox'>
  recorder: Pick<Recorder, 'record'>
  usage: MailUsage
  /** Null if nobody is to verify whom mails are from. */
  authenticator: Pick<Authenticator, 'verify'> | null
  unshown: Pick<UnshownMail, 'take' | 'releaseWhenShown'>
  now: () => Date
  onError: (error: unknown) => void
}

/** One recipient's record to be. Its message id stays over retries, so that a record written twice counts once. */
interface Copy {
  inbox: Inbox
  key: SecretKey
  messageId: MessageId
  rcptTo: string
  place: Place
}

interface Sealing {
  source: PackedSource
  departure: AbortSignal
  /** What the sender knows the mail by. */
  identity: string | null
  /** On the clock of `performance.now()`: the mail was all there. */
  beganAtMs: number
  receivedAt: Date
  trace: IncomingMail['trace']
  senderKey: SenderKey | null
}

const RETRY_MS = { first: 100, most: 5_000 }
/** Sealing this much takes a millisecond or two, for which others wait. */
const YIELD_FROM_BYTES = 1024 * 1024

/** Turns a mail into one MessageReceived for each recipient. */
export class Acceptance {
  private readonly room = new InboxRoom()

  constructor(private readonly options: AcceptanceOptions) {}

  /**
   * Resolves with the message ids, in the order of the recipients, once every record is durable, or with why
   * there is none. Nothing is appended before every recipient has been checked: where some can't be served any
   * more the sender is to try again, and then learns which at RCPT TO.
   *
   * Past the deadline with some records durable and others not it answers `partialAppend`, and where the log
   * could not say whether it took a record, `logUnavailable`: the sender's retry may then double a mail, which
   * is the lesser evil next to losing one (RFC 5321, section 6.1).
   */
  async accept(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const { recipients, senderKey } = mail
    const receivedAt = this.options.now()
    const prepared = await Promise.all(recipients.map((one) => this.prepare(one, receivedAt)))
    const copies = prepared.flatMap((one) => (one instanceof Refusal ? [] : [one]))
    const refusal = prepared.find((one) => one instanceof Refusal)
    try {
      if (refusal === undefined) return await this.appendAll(copies, { ...mail, receivedAt })
      // To try again helps where something changed since RCPT TO, not where the mail's own copies fill an inbox.
      const refused = recipients.filter((_, index) => prepared[index] instanceof Refusal)
      const isItsOwnDoing = refused.every((one) => copies.some(({ inbox }) => inbox.id === one.inbox.id))
      const outcome = copies.length === 0 || isItsOwnDoing ? refusal : REFUSALS.recipientsChanged
      for (const [index, { inbox }] of recipients.entries()) {
        const own = prepared[index]
        this.options.usage.refused(inbox, senderKey, own instanceof Refusal ? own : outcome)
      }
      return outcome
    } finally {
      for (const { place } of copies) place.leave()
    }
  }

  private async appendAll(
    copies: readonly Copy[],
    { raw, trace, senderKey, receivedAt, deadlineMs, departure }: IncomingMail & { receivedAt: Date },
  ): Promise<MessageId[] | Refusal> {
    const beganAtMs = performance.now()
    const [source, authentication] = await Promise.all([
      packSource(raw),
      this.options.authenticator?.verify(raw, trace),
    ])
    const sealing = {
      source,
      departure,
      identity: identityOf(raw),
      beganAtMs,
      receivedAt,
      senderKey,
      trace: { ...trace, ...(authentication && { authentication }) },
    }
    const first = await this.appendEach(copies, sealing)
    let { missing } = first
    if (missing.length === copies.length) {
      return this.leaveOut(
        missing,
        senderKey,
        first.isCrowded ? REFUSALS.memoryFull : REFUSALS.logUnavailable,
      )
    }
    for (let ms = RETRY_MS.first; missing.length > 0; ms = Math.min(ms * 2, RETRY_MS.most)) {
      if (departure.aborted || performance.now() + ms >= deadlineMs)
        return this.leaveOut(missing, senderKey, REFUSALS.partialAppend)
      await pause(ms)
      missing = (await this.appendEach(missing, sealing)).missing
    }
    return copies.map(({ messageId }) => messageId)
  }

  private leaveOut(missing: readonly Copy[], senderKey: SenderKey | null, refusal: Refusal): Refusal {
    for (const { inbox } of missing) this.options.usage.refused(inbox, senderKey, refusal)
    return refusal
  }

  private async prepare({ inbox: { id: inboxId }, rcptTo }: Recipient, now: Date): Promise<Copy | Refusal> {
    let place: Place | null = null
    try {
      const row = await this.options.inboxes.inbox(inboxId)
      if (row === null) return REFUSALS.catchingUp
      const { inbox } = row
      const refusal = refusalOf(inbox, now)
      if (refusal !== null) return refusal
      place = this.room.take(row)
      if (place === null) return REFUSALS.inboxFull
      const found = await this.options.vault.find(inboxId)
      if (found.state === 'known') {
        return { inbox, key: found.key, messageId: mintId('msg'), rcptTo, place }
      }
      place.leave()
      return found.state === 'forgotten' ? REFUSALS.inboxEnded : REFUSALS.readModelUnavailable
    } catch (error) {
      place?.leave()
      this.options.onError(error)
      return REFUSALS.readModelUnavailable
    }
  }

  /**
   * Resolves with the copies whose records are not known to be durable, and whether some of them waited too long for
   * earlier mail of their account.
   */
  private async appendEach(
    copies: readonly Copy[],
    sealing: Sealing,
  ): Promise<{ missing: Copy[]; isCrowded: boolean }> {
    const { unshown, onError } = this.options
    const { size: bytes } = sealing.source
    const missing: Copy[] = []
    let isCrowded = false
    let durable = 0
    const appends: Promise<void>[] = []
    for (const [index, copy] of copies.entries()) {
      const release = await unshown.take(copy.inbox.accountId, bytes, sealing.departure).catch(() => null)
      const isLogAway = missing.length > 0 && durable === 0
      isCrowded = release === null
      if (release === null || isLogAway) {
        // What is not tried costs no sealing.
        release?.()
        missing.push(...copies.slice(index))
        break
      }
      const appending = this.append(copy, sealing).then(
        (position) => {
          durable += 1
          unshown.releaseWhenShown(position, release)
        },
        (error: unknown) => {
          release()
          missing.push(copy)
          onError(error)
        },
      )
      appends.push(appending)
      if (bytes >= YIELD_FROM_BYTES) await nextTurn()
    }
    await Promise.all(appends)
    return { missing, isCrowded }
  }

  /** Resolves with where the copy's record stands. */
  private async append(copy: Copy, sealing: Sealing): Promise<Position> {
    const { inbox, key, messageId, rcptTo, place } = copy
    const { source, identity, beganAtMs, receivedAt, senderKey, trace } = sealing
    const sealed = sealMail(key, inbox.id, messageId, { ...trace, rcptTo }, source)
    const { events, refusal } = decide(
      { inbox, message: null },
      {
        type: 'ReceiveMessage',
        inboxId: inbox.id,
        messageId,
        size: source.size,
        digest: hash('sha256', sealed, 'hex'),
        sealed,
        now: receivedAt,
      },
    )
    const [received] = events
    if (received === undefined) throw new Error(`${refusal?.code}, though ${inbox.id} has just accepted it`)
    const { accountId, environment } = inbox
    const attribution = { accountId, environment, keyId: keyOfSender(senderKey, inbox) }
    const position = await this.options.recorder.record(received, attribution)
    place.fill(position.offset)
    const acceptMs = performance.now() - beganAtMs
    this.options.usage.accepted(copy, { senderKey, identity, size: source.size, acceptMs })
    return position
  }
}
