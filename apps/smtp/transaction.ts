import type { Inbox } from '#libs/inbox/inbox.js'
import type { InboxId } from '#libs/typeid/typeid.js'
import type { Recipient } from './acceptance.js'
import { readMailParameters, type MailParameters } from './mail-parameters.js'
import { isInternational, readPathCommand, type Path } from './path.js'
import { Refusal, REFUSALS } from './replies.js'

export interface TransactionContext {
  maxMessageBytes: number
  maxRecipients: number
  hasRoomFor: (bytes: number) => boolean
  refusalOfMail: () => Promise<Refusal | null>
  resolve: (mailbox: string) => Promise<Inbox | Refusal>
}

/** Of one mail in one inbox: each tag of an address is a recipient of its own. */
const MOST_COPIES = 10

/** A mail's envelope as MAIL FROM and RCPT TO make it (RFC 5321, section 3.3). */
export class Transaction {
  private sender: { path: Path; parameters: MailParameters } | null = null
  private readonly byMailbox = new Map<string, Recipient>()
  private readonly copies = new Map<InboxId, number>()

  constructor(private readonly context: TransactionContext) {}

  get mailFrom(): string {
    return this.sender?.path.address ?? ''
  }

  get declaredBytes(): number | null {
    return this.sender?.parameters.declaredBytes ?? null
  }

  get recipients(): Recipient[] {
    return [...this.byMailbox.values()]
  }

  get recipientCount(): number {
    return this.byMailbox.size
  }

  /** Judges MAIL FROM; null where the mail may come. */
  async begin(command: Buffer): Promise<Refusal | null> {
    const read = readPathCommand(command)
    if (read === null) return REFUSALS.wrongSender
    if (this.sender !== null) return REFUSALS.nestedMail
    const { path } = read
    const parameters = readMailParameters(read.parameters, this.context.maxMessageBytes)
    if (parameters instanceof Refusal) return parameters
    if (isInternational(path) && !parameters.isInternational) return REFUSALS.needsSmtpUtf8
    if (!this.context.hasRoomFor(parameters.declaredBytes ?? 0)) return REFUSALS.memoryFull
    const refusal = await this.context.refusalOfMail()
    if (refusal === null) this.sender = { path, parameters }
    return refusal
  }

  /** Judges RCPT TO: the refusal, or whether there is one recipient more. */
  async add(command: Buffer): Promise<Refusal | boolean> {
    const read = readPathCommand(command)
    if (read === null || read.path.address === '') return REFUSALS.wrongRecipient
    if (this.sender === null) return REFUSALS.needsMail
    // DSN (RFC 3461) is not offered, and nothing else knows a parameter of RCPT TO.
    if (read.parameters.length > 0) return REFUSALS.unknownParameter
    const { address, mailbox } = read.path
    if (isInternational(read.path) && !this.sender.parameters.isInternational) return REFUSALS.needsSmtpUtf8
    const key = mailbox.toLowerCase()
    const isRepeated = this.byMailbox.has(key)
    if (!isRepeated && this.byMailbox.size >= this.context.maxRecipients) return REFUSALS.tooManyRecipients
    const inbox = await this.context.resolve(mailbox)
    if (inbox instanceof Refusal) return inbox
    const copies = (this.copies.get(inbox.id) ?? 0) + (isRepeated ? 0 : 1)
    if (copies > MOST_COPIES) return REFUSALS.tooManyTags
    this.copies.set(inbox.id, copies)
    this.byMailbox.set(key, { inbox, rcptTo: address })
    return !isRepeated
  }
}
