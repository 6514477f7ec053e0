import { hash } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { usedByMail } from '#libs/domain/account/quota.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import { decide, type InboxCommand } from '#libs/domain/inbox/decide.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import {
  fingerprintOf,
  packSource,
  sealMail,
  type PackedSource,
  type SecretKey,
} from '#libs/ports/key-vault/sealing.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { isExcess, type AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { InboxCapacity, type Reservation } from '#libs/ports/read-model/inbox-capacity.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { InboxRow } from '#libs/ports/read-model/views.js'
import type { MailFaults } from './faults.js'
import type { SenderVerifier } from './sender-verifier.js'
import type { MailUsage } from './journal.js'
import { identityOf, type IncomingMail, type Recipient } from './mail-data.js'
import { refusalOf, refusalOfError } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'
import type { InFlightMail } from './in-flight-mail.js'

export interface AcceptanceOptions {
  vault: Pick<KeyVault, 'find'>
  inboxes: Pick<MailQueries, 'inbox'>
  recorder: Pick<Recorder, 'record'>
  usage: MailUsage
  quotas: Pick<AccountQuotas, 'reserve'>
  /** Null if senders are not verified. */
  verifier: Pick<SenderVerifier, 'verify'> | null
  inFlight: Pick<InFlightMail, 'take' | 'releaseWhenVisible'>
  faults: Pick<MailFaults, 'afterAccept'>
  now: () => Date
  onError: (error: unknown) => void
}

/** Capacity of an inbox and of its account's quotas. */
interface Space extends Pick<Reservation, 'release'> {
  fill: (position: Position) => void
}

/** One recipient's copy of a mail. Retries use the same message id, so that a record written twice counts once. */
interface Copy {
  inbox: Inbox
  key: SecretKey
  messageId: MessageId
  rcptTo: string
  reservation: Space
  /** A fault drops the mail: only its size and digest are appended. */
  isDropped: boolean
  /** The copy that this one repeats, because of a fault; null otherwise. */
  duplicateOf: MessageId | null
}

/** A mail, with the data that its copies share. */
interface PackedMail extends IncomingMail {
  source: PackedSource
  receivedAt: Date
  /** When accepting it started, on the clock of `performance.now()`. */
  startedAtMs: number
  /** Its Message-ID, if it has one. */
  identity: string | null
}

const RETRY_MS = { first: 100, max: 5_000 }
/** Sealing this much blocks the event loop for a millisecond or two. */
const YIELD_FROM_BYTES = 1024 * 1024

/** Accepts a mail: appends a MessageReceived for each recipient. */
export class Acceptance {
  private readonly capacity = new InboxCapacity()
  private readonly inProgress = new Set<Promise<unknown>>()

  constructor(private readonly options: AcceptanceOptions) {}

  /** Resolves once every mail that is being accepted has its outcome. */
  async settled(): Promise<void> {
    await Promise.all(this.inProgress)
  }

  /**
   * Resolves with the message ids, in the order of the recipients, once every record is durable, or with the refusal.
   * Never rejects. Nothing is appended before every recipient has been checked: if some can't receive the mail any
   * more, the sender must try again, and RCPT TO will refuse those.
   *
   * If only some records are durable at the deadline, the refusal is `partialAppend`. If it is not known whether the
   * log has a record, it is `logUnavailable`. The sender's retry may then duplicate a mail, which is better than
   * losing one (RFC 5321, section 6.1).
   */
  accept(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const accepting = this.acceptForAll(mail).catch((error: unknown) => {
      this.options.onError(error)
      return REFUSALS.internalError
    })
    this.inProgress.add(accepting)
    return accepting.finally(() => this.inProgress.delete(accepting))
  }

  private async acceptForAll(mail: IncomingMail): Promise<MessageId[] | Refusal> {
    const { recipients, senderKey } = mail
    const receivedAt = this.options.now()
    const prepared = await Promise.all(
      recipients.map((recipient) => this.prepare(recipient, mail, receivedAt)),
    )
    const copies = prepared.flatMap((each) => (each instanceof Refusal ? [] : each))
    const refusal = prepared.find((each) => each instanceof Refusal)
    try {
      if (refusal === undefined) return await this.appendAll(copies, mail, receivedAt)
      // A retry helps if something has changed since RCPT TO, but not if the mail's own copies fill the inbox.
      const refused = recipients.filter((_, index) => prepared[index] instanceof Refusal)
      const areInboxesFull = refused.every((one) => copies.some(({ inbox }) => inbox.id === one.inbox.id))
      const outcome = copies.length === 0 || areInboxesFull ? refusal : REFUSALS.recipientsChanged
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
    const startedAtMs = performance.now()
    const { raw, senderKey, deadlineMs, disconnected } = mail
    const [source, authentication] = await Promise.all([
      packSource(raw),
      this.options.verifier?.verify(raw, mail.trace),
    ])
    const trace = { ...mail.trace, ...(authentication && { authentication }) }
    const packed = { ...mail, trace, source, receivedAt, startedAtMs, identity: identityOf(raw) }
    const first = await this.appendEach(copies, packed)
    let { missing } = first
    if (missing.length === copies.length) {
      const refusal = first.isBudgetExhausted ? REFUSALS.memoryFull : REFUSALS.logUnavailable
      return this.refuse(missing, senderKey, refusal)
    }
    for (let ms = RETRY_MS.first; missing.length > 0; ms = Math.min(ms * 2, RETRY_MS.max)) {
      if (disconnected.aborted || performance.now() + ms >= deadlineMs) {
        // The sender must not repeat a mail of which only the duplicate on purpose is missing.
        if (missing.every(({ duplicateOf }) => duplicateOf !== null)) break
        return this.refuse(missing, senderKey, REFUSALS.partialAppend)
      }
      await pause(ms)
      missing = (await this.appendEach(missing, packed)).missing
    }
    return copies.filter(({ duplicateOf }) => duplicateOf === null).map(({ messageId }) => messageId)
  }

  private refuse(missing: readonly Copy[], senderKey: SenderKey | null, refusal: Refusal): Refusal {
    for (const { inbox, duplicateOf } of missing) {
      if (duplicateOf === null) this.options.usage.refused(inbox, senderKey, refusal)
    }
    return refusal
  }

  /** The copies of one recipient: one, or two if a fault duplicates the mail and the inbox has space for both. */
  private async prepare(
    { inbox: { id: inboxId }, rcptTo }: Recipient,
    { raw, trace: { mailFrom } }: IncomingMail,
    now: Date,
  ): Promise<Copy[] | Refusal> {
    let reservation: Space | null = null
    try {
      const row = await this.options.inboxes.inbox(inboxId)
      if (row === null) return REFUSALS.catchingUp
      const { inbox } = row
      const refusal = refusalOf(inbox, now)
      if (refusal !== null) return refusal
      const reserved = await this.reserve(row, raw.length)
      if (reserved instanceof Refusal) return reserved
      reservation = reserved
      const found = await this.options.vault.find(inboxId)
      if (found.state !== 'known') {
        reservation.release()
        return found.state === 'forgotten' ? REFUSALS.inboxEnded : REFUSALS.readModelUnavailable
      }
      const copy = { inbox, key: found.key, messageId: mintId('msg'), rcptTo, reservation, duplicateOf: null }
      const outcome = await this.options.faults.afterAccept({ inbox, mailFrom, rcptTo })
      const first = { ...copy, isDropped: outcome === 'drop' }
      const second = outcome === 'duplicate' ? await this.reserve(row, raw.length) : REFUSALS.inboxFull
      if (second instanceof Refusal) return [first]
      return [
        first,
        { ...first, messageId: mintId('msg'), reservation: second, duplicateOf: first.messageId },
      ]
    } catch (error) {
      reservation?.release()
      return refusalOfError(error, this.options.onError)
    }
  }

  /** Reserves capacity of the inbox, and of its account's quotas. */
  private async reserve(row: InboxRow, bytes: number): Promise<Space | Refusal> {
    const ofInbox = this.capacity.reserve(row)
    if (ofInbox === null) return REFUSALS.inboxFull
    try {
      const used = usedByMail(bytes)
      const ofAccount = await this.options.quotas.reserve(row.inbox, used)
      if (isExcess(ofAccount)) {
        ofInbox.release()
        return REFUSALS.quotaExceeded
      }
      return {
        fill(position) {
          ofInbox.fill(position.offset)
          ofAccount.fill(used, position)
        },
        release() {
          ofInbox.release()
          ofAccount.release()
        },
      }
    } catch (error) {
      ofInbox.release()
      throw error
    }
  }

  /**
   * Resolves with the copies whose records are not known to be durable, and whether an account has too much mail in
   * flight.
   */
  private async appendEach(
    copies: readonly Copy[],
    mail: PackedMail,
  ): Promise<{ missing: Copy[]; isBudgetExhausted: boolean }> {
    const { inFlight, onError } = this.options
    const { size: bytes } = mail.source
    const missing: Copy[] = []
    let isBudgetExhausted = false
    let durable = 0
    const appends: Promise<void>[] = []
    for (const [index, copy] of copies.entries()) {
      const release = await inFlight.take(copy.inbox.accountId, bytes, mail.disconnected)
      const isLogUnavailable = missing.length > 0 && durable === 0
      isBudgetExhausted = release === null
      if (release === null || isLogUnavailable) {
        // Don't seal and append the remaining copies.
        release?.()
        missing.push(...copies.slice(index))
        break
      }
      const appending = this.append(copy, mail).then(
        (position) => {
          durable += 1
          inFlight.releaseWhenVisible(position, release)
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
    return { missing, isBudgetExhausted }
  }

  /** Resolves with the position of the copy's record. */
  private async append(copy: Copy, mail: PackedMail): Promise<Position> {
    const { inbox, reservation } = copy
    const { startedAtMs, senderKey } = mail
    const { events, refusal } = decide({ inbox, message: null }, commandFor(copy, mail))
    const [received] = events
    if (received === undefined) throw new Error(`${inbox.id} refused a checked mail: ${refusal?.code}`)
    const { accountId, environment } = inbox
    const attribution = { accountId, environment, keyId: keyOfSender(senderKey, inbox) }
    const position = await this.options.recorder.record(received, attribution)
    if (received.type === 'MessageReceived') reservation.fill(position)
    if (copy.duplicateOf === null) {
      this.options.usage.accepted(inbox, senderKey, performance.now() - startedAtMs)
    }
    return position
  }
}

function commandFor(
  { inbox: { id: inboxId }, key, messageId, rcptTo, isDropped, duplicateOf }: Copy,
  { raw, source, trace, identity, receivedAt: now }: PackedMail,
): InboxCommand {
  const facts = { inboxId, messageId, size: source.size, now }
  if (isDropped) return { type: 'DropMessage', ...facts, digest: hash('sha256', raw, 'hex') }
  const envelope = { ...trace, rcptTo, ...(duplicateOf !== null && { duplicateOf }) }
  const sealed = sealMail(key, inboxId, messageId, envelope, source)
  const fingerprint = identity === null ? null : fingerprintOf(key, `message-id:${inboxId}`, identity)
  const digest = hash('sha256', sealed, 'hex')
  return { type: 'ReceiveMessage', ...facts, digest, sealed, duplicateOf, fingerprint }
}
