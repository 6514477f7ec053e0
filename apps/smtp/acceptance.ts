import { hash } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { packSource, sealMail, type PackedSource, type SecretKey } from '#libs/ports/key-vault/content.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { type Inbox, decide } from '#libs/domain/inbox/inbox.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'
import type { IncomingMail, Recipient } from './mail-data.js'
import { type UnshownMail, InboxCapacity, type Reservation } from './unshown-mail.js'
import type { Authenticator } from './authenticator.js'
import { identityOf, type MailUsage } from './journal.js'
import { refusalOf } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'

export interface AcceptanceOptions {
  vault: Pick<KeyVault, 'find'>
  inboxes: Pick<InboxQueries, 'inbox'>
  recorder: Pick<Recorder, 'record'>
  usage: MailUsage
  /** Null if senders are not verified. */
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
  reservation: Reservation
}

/** A mail with what its copies share. */
interface PackedMail extends IncomingMail {
  source: PackedSource
  receivedAt: Date
  /** When `accept` was called with it, on the clock of `performance.now()`. */
  beganAtMs: number
  /** What the sender knows the mail by. */
  identity: string | null
}

const RETRY_MS = { first: 100, most: 5_000 }
/** Sealing this much takes a millisecond or two, and others wait for it. */
const YIELD_FROM_BYTES = 1024 * 1024

/** Turns a mail into one MessageReceived for each recipient. */
export class Acceptance {
  private readonly capacity = new InboxCapacity()
  private readonly underWay = new Set<Promise<unknown>>()

  constructor(private readonly options: AcceptanceOptions) {}

  /** Resolves once every mail that is being accepted now has its outcome. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay)
  }

  /**
   * Resolves with the message ids, in the order of the recipients, once every record is durable, or with the refusal.
   * Never rejects. Nothing is appended before every recipient has been checked: if some can't be served any more, the
   * sender is to try again, and then learns which at RCPT TO.
   *
   * If only some records are durable at the deadline, the refusal is `partialAppend`; if it is not known whether the log
   * took a record, `logUnavailable`. The sender's retry may then double a mail, which is better than to lose one (RFC
   * 5321, section 6.1).
   */
  accept(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const accepting = this.outcomeOf(mail).catch((error: unknown) => {
      this.options.onError(error)
      return REFUSALS.internalError
    })
    this.underWay.add(accepting)
    return accepting.finally(() => this.underWay.delete(accepting))
  }

  private async outcomeOf(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const { recipients, senderKey } = mail
    const receivedAt = this.options.now()
    const prepared = await Promise.all(recipients.map((one) => this.prepare(one, receivedAt)))
    const copies = prepared.flatMap((one) => (one instanceof Refusal ? [] : [one]))
    const refusal = prepared.find((one) => one instanceof Refusal)
    try {
      if (refusal === undefined) return await this.appendAll(copies, mail, receivedAt)
      // To try again helps if something changed since RCPT TO, not if the mail's own copies fill an inbox.
      const refused = recipients.filter((_, index) => prepared[index] instanceof Refusal)
      const isItsOwnDoing = refused.every((one) => copies.some(({ inbox }) => inbox.id === one.inbox.id))
      const outcome = copies.length === 0 || isItsOwnDoing ? refusal : REFUSALS.recipientsChanged
      for (const [index, { inbox }] of recipients.entries()) {
        const own = prepared[index]
        this.options.usage.refused(inbox, senderKey, own instanceof Refusal ? own : outcome)
      }
      return outcome
    } finally {
      for (const { reservation } of copies) reservation.release()
    }
  }

  private async appendAll(
    copies: readonly Copy[],
    mail: IncomingMail,
    receivedAt: Date,
  ): Promise<MessageId[] | Refusal> {
    const beganAtMs = performance.now()
    const { raw, senderKey, deadlineMs, departure } = mail
    const [source, authentication] = await Promise.all([
      packSource(raw),
      this.options.authenticator?.verify(raw, mail.trace),
    ])
    const trace = { ...mail.trace, ...(authentication && { authentication }) }
    const packed = { ...mail, trace, source, receivedAt, beganAtMs, identity: identityOf(raw) }
    const first = await this.appendEach(copies, packed)
    let { missing } = first
    if (missing.length === copies.length) {
      const refusal = first.isCrowded ? REFUSALS.memoryFull : REFUSALS.logUnavailable
      return this.leaveOut(missing, senderKey, refusal)
    }
    for (let ms = RETRY_MS.first; missing.length > 0; ms = Math.min(ms * 2, RETRY_MS.most)) {
      if (departure.aborted || performance.now() + ms >= deadlineMs)
        return this.leaveOut(missing, senderKey, REFUSALS.partialAppend)
      await pause(ms)
      missing = (await this.appendEach(missing, packed)).missing
    }
    return copies.map(({ messageId }) => messageId)
  }

  private leaveOut(missing: readonly Copy[], senderKey: SenderKey | null, refusal: Refusal): Refusal {
    for (const { inbox } of missing) this.options.usage.refused(inbox, senderKey, refusal)
    return refusal
  }

  private async prepare({ inbox: { id: inboxId }, rcptTo }: Recipient, now: Date): Promise<Copy | Refusal> {
    let reservation: Reservation | null = null
    try {
      const row = await this.options.inboxes.inbox(inboxId)
      if (row === null) return REFUSALS.catchingUp
      const { inbox } = row
      const refusal = refusalOf(inbox, now)
      if (refusal !== null) return refusal
      reservation = this.capacity.reserve(row)
      if (reservation === null) return REFUSALS.inboxFull
      const found = await this.options.vault.find(inboxId)
      if (found.state === 'known') {
        return { inbox, key: found.key, messageId: mintId('msg'), rcptTo, reservation }
      }
      reservation.release()
      return found.state === 'forgotten' ? REFUSALS.inboxEnded : REFUSALS.readModelUnavailable
    } catch (error) {
      reservation?.release()
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
    mail: PackedMail,
  ): Promise<{ missing: Copy[]; isCrowded: boolean }> {
    const { unshown, onError } = this.options
    const { size: bytes } = mail.source
    const missing: Copy[] = []
    let isCrowded = false
    let durable = 0
    const appends: Promise<void>[] = []
    for (const [index, copy] of copies.entries()) {
      const release = await unshown.take(copy.inbox.accountId, bytes, mail.departure).catch(() => null)
      const isLogAway = missing.length > 0 && durable === 0
      isCrowded = release === null
      if (release === null || isLogAway) {
        // What is not tried costs no sealing.
        release?.()
        missing.push(...copies.slice(index))
        break
      }
      const appending = this.append(copy, mail).then(
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

  /** Resolves with the position of the copy's record. */
  private async append(copy: Copy, mail: PackedMail): Promise<Position> {
    const { inbox, key, messageId, rcptTo, reservation } = copy
    const { source, identity, beganAtMs, receivedAt, senderKey, trace } = mail
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
    reservation.fill(position.offset)
    const acceptMs = performance.now() - beganAtMs
    this.options.usage.accepted(copy, { senderKey, identity, size: source.size, acceptMs })
    return position
  }
}
