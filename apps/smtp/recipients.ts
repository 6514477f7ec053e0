import { domainToASCII } from 'node:url'
import { asOf, type Inbox, addressReached } from '#libs/domain/inbox/inbox.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import {
  ViewsCatchingUpError,
  type ConsistentViews,
  measureBacklog,
} from '#libs/ports/read-model/consistent-views.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { Networks } from '#libs/runtime/remote-address.js'
import type { SenderKey } from './smtp-auth.js'
import type { MailUsage } from './journal.js'
import { foreignRecipient, inboxEndedAt, type MaybeLater, type Refusal, REFUSALS } from './replies.js'

/** Who sends a mail. */
interface Client {
  remoteAddress: string
  /** Null if it did not authenticate with an API key. */
  senderKey: SenderKey | null
}

/** A recipient of a domain that is not ours, whose mail is accepted and dropped. */
export const DISCARDED = 'discarded'

interface RecipientsOptions {
  log: LogLayout
  inboxes: InboxQueries
  views: ConsistentViews
  settings: Settings
  usage: MailUsage
  now: () => Date
  onError: (error: unknown) => void
}

/** How long a measured backlog counts. */
const BACKLOG_FRESH_MS = 250

/** Decides from the views whether mail is accepted, and for whom. */
export class Recipients {
  private readonly foreign: Refusal
  private readonly discardFrom: Networks
  private measured: { refusal: Refusal | null; atMs: number } = { refusal: null, atMs: -Infinity }
  /** Shared by the mails that come while it is under way. */
  private measuring: Promise<Refusal | null> | null = null

  constructor(private readonly options: RecipientsOptions) {
    const { mailDomain, discardFrom } = options.settings
    this.foreign = foreignRecipient(mailDomain)
    this.discardFrom = new Networks(discardFrom ?? [])
  }

  /** Null if mail may come, whoever it is for. Never rejects. */
  refusalOfMail(): MaybeLater<Refusal | null> {
    const { refusal, atMs } = this.measured
    if (performance.now() - atMs < BACKLOG_FRESH_MS) return refusal
    this.measuring ??= this.measureBacklog().finally(() => (this.measuring = null))
    return this.measuring
  }

  private async measureBacklog(): Promise<Refusal | null> {
    const { log, inboxes, settings } = this.options
    const atMs = performance.now()
    try {
      const { records } = await measureBacklog(log, inboxes, 'inbox-events')
      const refusal = records > settings.maxBacklog ? REFUSALS.behind : null
      this.measured = { refusal, atMs }
      return refusal
    } catch (error) {
      return this.unavailable(error)
    }
  }

  /** The inbox that a RCPT TO reaches, DISCARDED, or why it is refused. Never rejects. */
  resolve(recipient: string, client: Client): MaybeLater<Inbox | typeof DISCARDED | Refusal> {
    const { mailDomain, unknownRecipients } = this.options.settings
    const address = addressReached(recipient, mailDomain)
    if (address !== null) return this.look(address, client.senderKey)
    if (!isForeign(recipient, mailDomain)) return REFUSALS.unknownRecipient
    return unknownRecipients === 'discard' && this.mayDiscard(client) ? DISCARDED : this.foreign
  }

  private mayDiscard({ remoteAddress }: Client): boolean {
    return isLoopback(remoteAddress) || this.discardFrom.has(remoteAddress)
  }

  private async look(address: Address, senderKey: SenderKey | null): Promise<Inbox | Refusal> {
    try {
      const found = await this.options.views.find('inbox-events', () => this.inboxAt(address))
      if (found === null) return REFUSALS.unknownRecipient
      const refusal = refusalOf(found, this.options.now())
      if (refusal !== null) this.options.usage.refused(found, senderKey, refusal)
      return refusal ?? found
    } catch (error) {
      return this.unavailable(error)
    }
  }

  private async inboxAt(address: Address): Promise<Inbox | null> {
    const { inboxes } = this.options
    const id = await inboxes.inboxIdAt(address)
    const row = id === null ? null : await inboxes.inbox(id)
    return row?.inbox ?? null
  }

  private unavailable(error: unknown): Refusal {
    if (error instanceof ViewsCatchingUpError) return REFUSALS.catchingUp
    this.options.onError(error)
    return REFUSALS.readModelUnavailable
  }
}

/**
 * Whether a mailbox is in a foreign domain. Our domain, its subdomains, address literals and a bare Postmaster are not
 * foreign.
 */
function isForeign(mailbox: string, mailDomain: string): boolean {
  // Unicode forms of our own domain are ours as well; what is no domain name comes out empty.
  const domain = domainToASCII(mailbox.slice(mailbox.lastIndexOf('@') + 1))
  const own = domainToASCII(mailDomain)
  return mailbox.includes('@') && domain !== '' && domain !== own && !domain.endsWith(`.${own}`)
}

/** Why an inbox accepts no mail at that time; null if it does. */
export function refusalOf(inbox: Inbox, now: Date): Refusal | null {
  const current = asOf(inbox, now)
  if (current.state !== 'active') return inboxEndedAt(current)
  return current.messageCount >= current.maxMessages ? REFUSALS.inboxFull : null
}
