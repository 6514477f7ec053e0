import { setTimeout as pause } from 'node:timers/promises'
import type { SecureContext } from 'node:tls'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { Envelope } from '#libs/mail/message.js'
import type { RefusedMailSender } from '#libs/role/refused-mail.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Acceptance } from './acceptance.js'
import type { AutoInboxes } from './auto-inboxes.js'
import type { RemoteHost } from './connection-limits.js'
import type { MailFaults } from './faults.js'
import type { Journal, MailUsage, SessionRef } from './journal.js'
import { MailData, type IncomingMail, type Recipient } from './mail-data.js'
import {
  isInternational,
  readMailParameters,
  readPathCommand,
  refusalOfRecipientParameters,
  type MailParameters,
  type Path,
} from './path.js'
import { DISCARDED, type MissingInbox, type Recipients } from './recipients.js'
import { mailAccepted, Refusal, REFUSALS, REPLIES, type Answer } from './replies.js'
import type { SessionBounds, UnknownRecipients } from './session-bounds.js'
import type { AuthExchange, SenderKey, SmtpAuth } from './smtp-auth.js'

/** Shared by all sessions. */
export interface SessionContext {
  settings: Settings
  auth: SmtpAuth
  recipients: Recipients
  faults: MailFaults
  acceptance: Acceptance
  autoInboxes: Pick<AutoInboxes, 'create'>
  journal: Journal
  usage: MailUsage
  refusedMail: Pick<RefusedMailSender, 'add'>
  unknownRecipients: UnknownRecipients
  /** Undefined if TLS is off. */
  secureContext: SecureContext | undefined
}

/** The session that the transaction belongs to. */
export interface MailSession extends SessionRef {
  readonly peer: { host: RemoteHost }
  readonly bounds: SessionBounds
  readonly auth: Pick<AuthExchange, 'user'>
  readonly helo: string | null
  readonly tls: Envelope['tls']
}

interface Sender {
  path: Path
  parameters: MailParameters
  key: SenderKey | null
}

interface CurrentMail {
  data: MailData
  trace: Omit<Envelope, 'rcptTo'>
  startedAtMs: number
  isComplete: boolean
}

/** Copies of one mail in one inbox: each tag of an address is a separate recipient. */
const MAX_COPIES = 10

/**
 * The mail transactions of a session, in sequence (RFC 5321, section 3.3): the envelope from MAIL FROM and RCPT TO,
 * then the content from DATA to its reply.
 */
export class Transaction {
  private sender: Sender | null = null
  private readonly byMailbox = new Map<string, { inbox: Inbox | MissingInbox; rcptTo: string }>()
  private readonly discarded = new Set<string>()
  /** By inbox, or by the address of a missing one. */
  private readonly copies = new Map<string, number>()
  private mail: CurrentMail | null = null
  /** Aborts when the client disconnects while its mail is being accepted. */
  private disconnecting: AbortController | null = null

  constructor(
    private readonly context: SessionContext,
    private readonly session: MailSession,
  ) {}

  /** Whether DATA has started and its mail is not answered yet. */
  get isReceiving(): boolean {
    return this.mail !== null
  }

  /** Whether a mail has taken too long since DATA. */
  isOverdue(nowMs: number): boolean {
    return this.mail !== null && nowMs - this.mail.startedAtMs > this.context.settings.smtpDataTimeoutMs
  }

  /** Discards the envelope. */
  reset(): void {
    this.sender = null
    this.byMailbox.clear()
    this.discarded.clear()
    this.copies.clear()
  }

  async mailFrom(command: string): Promise<Answer> {
    const read = readPathCommand(command)
    if (read === null) return REFUSALS.wrongSender
    if (this.sender !== null) return REFUSALS.nestedMail
    const { settings, auth, recipients } = this.context
    const { path } = read
    const limits = { maxBytes: settings.maxMessageBytes, offersAuth: !auth.isOff }
    const parameters = readMailParameters(read.parameters, limits)
    if (parameters instanceof Refusal) return parameters
    if (isInternational(path) && !parameters.isInternational) return REFUSALS.needsSmtpUtf8
    const { peer, bounds } = this.session
    if (!peer.host.canTake(parameters.declaredBytes ?? 0)) return REFUSALS.memoryFull
    const refusal = await recipients.refusalOfMail()
    if (refusal !== null) return refusal
    const key = await auth.senderKey(this.session.auth.user)
    if (key instanceof Refusal) return key
    this.sender = { path, parameters, key }
    bounds.mailStarted()
    return REPLIES.senderAccepted
  }

  async rcptTo(command: string): Promise<Answer> {
    const read = readPathCommand(command)
    if (read === null || read.path.address === '') return REFUSALS.wrongRecipient
    const { sender } = this
    if (sender === null) return REFUSALS.needsMail
    const wrongParameters = refusalOfRecipientParameters(read.parameters)
    if (wrongParameters !== null) return wrongParameters
    const { address, mailbox } = read.path
    if (isInternational(read.path) && !sender.parameters.isInternational) return REFUSALS.needsSmtpUtf8
    const key = mailbox.toLowerCase()
    const isRepeated = this.byMailbox.has(key) || this.discarded.has(key)
    const { settings, recipients, faults, refusedMail } = this.context
    const count = this.byMailbox.size + this.discarded.size
    if (!isRepeated && count >= settings.smtpMaxRecipients) return REFUSALS.tooManyRecipients
    const envelope = { mailFrom: sender.path.address, rcptTo: address }
    const found = await recipients.resolve(mailbox, {
      ...envelope,
      remoteAddress: this.session.remoteAddress,
      senderKey: sender.key,
      declaredBytes: sender.parameters.declaredBytes,
    })
    if (found instanceof Refusal) return this.withoutRecipient(found)
    if (found === DISCARDED) this.discarded.add(key)
    else {
      if (found.state !== 'missing') {
        const attempt = { inbox: found, ...envelope }
        const refusal = await faults.refusalAt('rcpt', [attempt], { disconnected: null, bytes: 0 })
        if (refusal !== null) {
          refusedMail.add(found, envelope, refusal)
          return refusal
        }
      }
      if (!this.addCopy(found, isRepeated)) return REFUSALS.tooManyTags
      this.byMailbox.set(key, { inbox: found, rcptTo: address })
    }
    // A repeated recipient does not advance the mail.
    if (isRepeated)
      return this.session.bounds.countCommand() ? REPLIES.recipientAccepted : REFUSALS.tooManyCommands
    if (found !== DISCARDED && found.state !== 'missing') this.session.bounds.countKnown()
    return REPLIES.recipientAccepted
  }

  /** DATA. Returns the buffer for the mail's bytes, or a refusal. */
  startData(): MailData | Refusal {
    if (this.byMailbox.size + this.discarded.size === 0) return REFUSALS.needsRecipient
    const { peer, helo, remoteAddress, tls } = this.session
    const { sender, context } = this
    const limits = {
      maxBytes: context.settings.maxMessageBytes,
      declaredBytes: sender?.parameters.declaredBytes ?? null,
    }
    const data = MailData.begin(limits, peer.host)
    if (data === null) {
      this.listRefused(REFUSALS.memoryFull)
      return this.refuse(REFUSALS.memoryFull)
    }
    const trace = { mailFrom: sender?.path.address ?? '', helo: helo ?? '', remoteAddress, tls }
    this.mail = { data, trace, startedAtMs: performance.now(), isComplete: false }
    peer.host.incoming.add(data)
    return data
  }

  /** Accepts or refuses the complete mail, and resets the transaction. Never rejects. */
  async finish(): Promise<string | Refusal> {
    const { mail } = this
    if (mail === null) throw new Error('there is no mail')
    mail.isComplete = true
    this.session.peer.host.incoming.delete(mail.data)
    const outcome = await this.acceptMail(mail)
    if (outcome instanceof Refusal) this.listRefused(outcome)
    mail.data.release()
    this.mail = null
    this.reset()
    if (outcome instanceof Refusal) return outcome
    this.session.bounds.delivered()
    return mailAccepted(outcome)
  }

  /**
   * Call this when the connection has closed. Returns whether a mail was being received. A complete mail is still
   * accepted if it does not have to wait.
   */
  abandon(): boolean {
    if (this.mail === null) return false
    // The controller exists only for a complete mail, because an abort costs more than the rest of closing.
    this.disconnecting?.abort()
    const { data, isComplete } = this.mail
    if (isComplete) return false
    this.session.peer.host.incoming.delete(data)
    data.release()
    return true
  }

  private async acceptMail({ data, trace, startedAtMs }: CurrentMail): Promise<MessageId[] | Refusal> {
    const content = data.content()
    if (content.state !== 'complete') return this.refuse(REFUSAL_OF_CONTENT[content.state])
    const { journal, settings, acceptance, faults } = this.context
    const { raw } = content
    const recipients = await this.recipientsOfMail()
    if (recipients instanceof Refusal) return this.refuse(recipients)
    const discarded = this.discarded.size
    this.disconnecting ??= new AbortController()
    const receivedAtMs = performance.now()
    const mail: IncomingMail = {
      raw,
      trace,
      recipients,
      senderKey: this.sender?.key ?? null,
      deadlineMs: startedAtMs + settings.smtpDataTimeoutMs,
      disconnected: this.disconnecting.signal,
    }
    const attempts = recipients.map((recipient) => ({ ...recipient, mailFrom: trace.mailFrom }))
    const client = { disconnected: mail.disconnected, bytes: raw.length }
    const refusal = await faults.refusalAt('data', attempts, client)
    if (refusal !== null) return refusal
    const outcome = recipients.length === 0 ? [] : await acceptance.accept(mail)
    if (outcome instanceof Refusal) return outcome
    if (discarded > 0) journal.recipientsDiscarded(this.session, discarded, raw.length)
    if (recipients.length > 0) {
      const acceptMs = performance.now() - receivedAtMs
      journal.mailAccepted(this.session, mail, outcome, { receiveMs: receivedAtMs - startedAtMs, acceptMs })
    }
    return outcome
  }

  /** The recipients, once those without an inbox have one. */
  private async recipientsOfMail(): Promise<Recipient[] | Refusal> {
    const sender = this.session.peer.host.group
    const recipients = await Promise.all(
      [...this.byMailbox.values()].map(async ({ inbox, rcptTo }) => {
        const own = inbox.state === 'missing' ? await this.context.autoInboxes.create(inbox, sender) : inbox
        return own instanceof Refusal ? own : { inbox: own, rcptTo }
      }),
    )
    const refusal = recipients.find((each) => each instanceof Refusal)
    return refusal ?? recipients.flatMap((each) => (each instanceof Refusal ? [] : each))
  }

  /** Counts a copy for an inbox. Returns false if the inbox would get too many copies of this mail. */
  private addCopy(inbox: Inbox | MissingInbox, isRepeated: boolean): boolean {
    const id = inbox.state === 'missing' ? inbox.address : inbox.id
    const copies = (this.copies.get(id) ?? 0) + (isRepeated ? 0 : 1)
    if (copies <= MAX_COPIES) this.copies.set(id, copies)
    return copies <= MAX_COPIES
  }

  /** Delays the refusal of an unknown recipient, and ends the session after too many. */
  private async withoutRecipient(refusal: Refusal): Promise<Answer> {
    if (refusal.reason !== 'unknown-recipient') return refusal
    const delayMs = this.session.bounds.countUnknown()
    if (delayMs === null) return REFUSALS.tooManyUnknown
    return delayMs === 0 ? refusal : pause(delayMs, refusal, { ref: false })
  }

  /** Lists every recipient of a refused mail. */
  private listRefused(refusal: Refusal): void {
    const mailFrom = this.sender?.path.address ?? ''
    for (const { inbox, rcptTo } of this.byMailbox.values()) {
      const owner = inbox.state === 'missing' ? (inbox.domain ?? 'first-account') : inbox
      this.context.refusedMail.add(owner, { mailFrom, rcptTo }, refusal)
    }
  }

  private refuse(refusal: Refusal): Refusal {
    const senderKey = this.sender?.key ?? null
    for (const { inbox } of this.byMailbox.values()) {
      if (inbox.state !== 'missing') this.context.usage.refused(inbox, senderKey, refusal)
    }
    return refusal
  }
}

const REFUSAL_OF_CONTENT = {
  'too-large': REFUSALS.tooLarge,
  'memory-full': REFUSALS.memoryFull,
  'bare-line-break': REFUSALS.bareLineBreak,
} as const
