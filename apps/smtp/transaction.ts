import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Recipient } from './acceptance.js'
import type { SenderKey } from './smtp-auth.js'
import { isInternational, type Path, readPathCommand } from './path.js'
import { type Client, DISCARDED } from './recipients.js'
import { Refusal, REFUSALS } from './replies.js'

export interface TransactionContext {
  maxMessageBytes: number
  maxRecipients: number
  offersAuth: boolean
  hasRoomFor: (bytes: number) => boolean
  remoteAddress: string
  refusalOfMail: () => Promise<Refusal | null>
  /** The API key that the client is authenticated with at the moment. */
  senderKey: () => Promise<SenderKey | Refusal | null>
  resolve: (mailbox: string, client: Client) => Promise<Inbox | typeof DISCARDED | Refusal>
}

/** Of one mail in one inbox: each tag of an address is a recipient of its own. */
const MAX_COPIES = 10

/** A mail's envelope as MAIL FROM and RCPT TO make it (RFC 5321, section 3.3). */
export class Transaction {
  private sender: { path: Path; parameters: MailParameters; key: SenderKey | null } | null = null
  private readonly byMailbox = new Map<string, Recipient>()
  private readonly discarded = new Set<string>()
  private readonly copies = new Map<InboxId, number>()

  constructor(private readonly context: TransactionContext) {}

  get mailFrom(): string {
    return this.sender?.path.address ?? ''
  }

  get declaredBytes(): number | null {
    return this.sender?.parameters.declaredBytes ?? null
  }

  get senderKey(): SenderKey | null {
    return this.sender?.key ?? null
  }

  get recipients(): Recipient[] {
    return [...this.byMailbox.values()]
  }

  /** Of other domains: their mail is accepted and dropped. */
  get discardedCount(): number {
    return this.discarded.size
  }

  get recipientCount(): number {
    return this.byMailbox.size + this.discarded.size
  }

  /** Checks MAIL FROM; null if the mail may come. */
  async begin(command: Buffer): Promise<Refusal | null> {
    const read = readPathCommand(command)
    if (read === null) return REFUSALS.wrongSender
    if (this.sender !== null) return REFUSALS.nestedMail
    const { path } = read
    const { maxMessageBytes: maxBytes, offersAuth } = this.context
    const parameters = readMailParameters(read.parameters, { maxBytes, offersAuth })
    if (parameters instanceof Refusal) return parameters
    if (isInternational(path) && !parameters.isInternational) return REFUSALS.needsSmtpUtf8
    if (!this.context.hasRoomFor(parameters.declaredBytes ?? 0)) return REFUSALS.memoryFull
    const refusal = await this.context.refusalOfMail()
    if (refusal !== null) return refusal
    const key = await this.context.senderKey()
    if (key instanceof Refusal) return key
    this.sender = { path, parameters, key }
    return null
  }

  /** Handles RCPT TO. */
  async add(command: Buffer): Promise<Refusal | 'added' | 'discarded' | 'repeated'> {
    const read = readPathCommand(command)
    if (read === null || read.path.address === '') return REFUSALS.wrongRecipient
    if (this.sender === null) return REFUSALS.needsMail
    // DSN (RFC 3461) is not offered, and nothing else knows a parameter of RCPT TO.
    if (read.parameters.length > 0) return REFUSALS.unknownParameter
    const { address, mailbox } = read.path
    if (isInternational(read.path) && !this.sender.parameters.isInternational) return REFUSALS.needsSmtpUtf8
    const key = mailbox.toLowerCase()
    const isRepeated = this.byMailbox.has(key) || this.discarded.has(key)
    if (!isRepeated && this.recipientCount >= this.context.maxRecipients) return REFUSALS.tooManyRecipients
    const { remoteAddress } = this.context
    const inbox = await this.context.resolve(mailbox, { remoteAddress, senderKey: this.sender.key })
    if (inbox instanceof Refusal) return inbox
    if (inbox === DISCARDED) {
      this.discarded.add(key)
      return isRepeated ? 'repeated' : 'discarded'
    }
    const copies = (this.copies.get(inbox.id) ?? 0) + (isRepeated ? 0 : 1)
    if (copies > MAX_COPIES) return REFUSALS.tooManyTags
    this.copies.set(inbox.id, copies)
    this.byMailbox.set(key, { inbox, rcptTo: address })
    return isRepeated ? 'repeated' : 'added'
  }
}

/** What MAIL FROM says beside the address. */
interface MailParameters {
  /** SIZE (RFC 1870); null if there is none. */
  declaredBytes: number | null
  /** SMTPUTF8 (RFC 6531). */
  isInternational: boolean
}

/**
 * Reads the parameters of MAIL FROM: those of the extensions that EHLO offers, each once. Any other is refused
 * with 555 (RFC 5321, section 4.1.1.11), since a mail would then be treated otherwise than the client asked for.
 */
function readMailParameters(
  texts: readonly string[],
  { maxBytes, offersAuth }: { maxBytes: number; offersAuth: boolean },
): MailParameters | Refusal {
  const seen = new Set<string>()
  const read: MailParameters = { declaredBytes: null, isInternational: false }
  for (const text of texts) {
    const [keyword = '', ...rest] = text.split('=')
    const value = rest.length === 0 ? null : rest.join('=')
    const name = keyword.toUpperCase()
    if (seen.has(name)) return REFUSALS.wrongParameter
    seen.add(name)
    if (name === 'SIZE') {
      if (value === null || !/^\d{1,20}$/.test(value)) return REFUSALS.wrongParameter
      read.declaredBytes = Number(value)
    } else if (name === 'BODY') {
      // BINARYMIME needs CHUNKING (RFC 3030), which is not offered.
      if (value === null || !/^(7BIT|8BITMIME)$/i.test(value)) return REFUSALS.wrongParameter
    } else if (name === 'SMTPUTF8') {
      if (value !== null) return REFUSALS.wrongParameter
      read.isInternational = true
    } else if (name === 'AUTH' && offersAuth) {
      // Who submitted the mail first (RFC 4954, section 5), which nothing here depends on.
      if (value === null || value === '') return REFUSALS.wrongParameter
    } else {
      return REFUSALS.unknownParameter
    }
  }
  return (read.declaredBytes ?? 0) > maxBytes ? REFUSALS.tooLarge : read
}
