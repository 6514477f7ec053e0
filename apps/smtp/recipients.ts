import { domainToASCII } from 'node:url'
import type { Address } from '#libs/domain/inbox/events.js'
import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import { addressOfRecipient } from '#libs/domain/inbox/new-inbox.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import {
  measureBacklog,
  ViewsCatchingUpError,
  type ConsistentViews,
} from '#libs/ports/read-model/consistent-views.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { ViewProgress } from '#libs/ports/read-model/view-store.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'
import { Networks } from '#libs/runtime/remote-address.js'
import type { MailUsage } from './journal.js'
import { foreignRecipient, inboxEndedAt, REFUSALS, type MaybePromise, type Refusal } from './replies.js'
import type { SenderKey } from './smtp-auth.js'

interface Client {
  remoteAddress: string
  /** Null if it did not authenticate with an API key. */
  senderKey: SenderKey | null
}

/** A recipient in a foreign domain, whose mail is accepted and dropped. */
export const DISCARDED = 'discarded'

interface RecipientsOptions {
  log: LogLayout
  inboxes: Pick<MailQueries, 'inboxAt'> & ViewProgress
  views: ConsistentViews
  settings: Settings
  usage: MailUsage
  now: () => Date
  onError: (error: unknown) => void
}

/** How long a measured backlog is used. */
const BACKLOG_VALID_MS = 250

/** Decides from the views whether mail is accepted, and for which recipients. */
export class Recipients {
  private readonly domains: readonly string[]
  private readonly foreign: Refusal
  private readonly discardFrom: Networks
  /** A promise while it is measured. */
  private refusalOfBacklog: MaybePromise<Refusal | null> = null
  private measuredAtMs = -Infinity

  constructor(private readonly options: RecipientsOptions) {
    const { mailDomain, publicInboxDomain, discardFrom } = options.settings
    this.domains = publicInboxDomain === null ? [mailDomain] : [mailDomain, publicInboxDomain]
    this.foreign = foreignRecipient(this.domains)
    this.discardFrom = new Networks(discardFrom ?? [])
  }

  /** Why no mail is accepted now, for any recipient; null if mail is accepted. Never rejects. */
  refusalOfMail(): MaybePromise<Refusal | null> {
    const isMeasuring = this.refusalOfBacklog instanceof Promise
    if (!isMeasuring && performance.now() - this.measuredAtMs >= BACKLOG_VALID_MS) {
      this.measuredAtMs = performance.now()
      this.refusalOfBacklog = this.measureBacklog().then((refusal) => (this.refusalOfBacklog = refusal))
    }
    return this.refusalOfBacklog
  }

  private async measureBacklog(): Promise<Refusal | null> {
    const { log, inboxes, settings } = this.options
    try {
      const { records } = await measureBacklog(log, inboxes, ['inbox-events'])
      return records > settings.maxBacklog ? REFUSALS.behind : null
    } catch (error) {
      return this.unavailable(error)
    }
  }

  /** The inbox that a recipient belongs to, DISCARDED, or the refusal. Never rejects. */
  resolve(recipient: string, client: Client): MaybePromise<Inbox | typeof DISCARDED | Refusal> {
    const { unknownRecipients } = this.options.settings
    for (const domain of this.domains) {
      const address = addressOfRecipient(recipient, domain)
      if (address !== null) return this.lookUp(address, client.senderKey)
    }
    if (!this.domains.every((own) => isForeign(recipient, own))) return REFUSALS.unknownRecipient
    return unknownRecipients === 'discard' && this.mayDiscard(client) ? DISCARDED : this.foreign
  }

  private mayDiscard({ remoteAddress }: Client): boolean {
    return isLoopback(remoteAddress) || this.discardFrom.has(remoteAddress)
  }

  private async lookUp(address: Address, senderKey: SenderKey | null): Promise<Inbox | Refusal> {
    try {
      const { views, inboxes, usage, now } = this.options
      const found = await views.find('inbox-events', () => inboxes.inboxAt(address))
      if (found === null) return REFUSALS.unknownRecipient
      const { inbox } = found
      const refusal = refusalOf(inbox, now())
      if (refusal !== null) usage.refused(inbox, senderKey, refusal)
      return refusal ?? inbox
    } catch (error) {
      return this.unavailable(error)
    }
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
  // Normalizes Unicode forms of our domain. The result is empty if the text is not a domain name.
  const domain = domainToASCII(mailbox.slice(mailbox.lastIndexOf('@') + 1))
  const own = domainToASCII(mailDomain)
  return mailbox.includes('@') && domain !== '' && domain !== own && !domain.endsWith(`.${own}`)
}

/** Why an inbox refuses mail at that time; null if it accepts mail. */
export function refusalOf(inbox: Inbox, now: Date): Refusal | null {
  const current = asOf(inbox, now)
  if (current.state !== 'active') return inboxEndedAt(current)
  // Each dropped mail takes space in the history too.
  const isFull = current.messageCount >= current.maxMessages || current.droppedCount >= current.maxMessages
  return isFull ? REFUSALS.inboxFull : null
}
