import type { Address } from '#libs/domain/inbox/events.js'
import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import { addressOfRecipient } from '#libs/domain/inbox/new-inbox.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import type { FreeAddress } from '#libs/ports/idempotency/create-once.js'
import {
  measureBacklog,
  ViewsCatchingUpError,
  type ConsistentViews,
} from '#libs/ports/read-model/consistent-views.js'
import { isExcess, type AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { ViewProgress } from '#libs/ports/read-model/view-store.js'
import { addressOf, domainOf } from '#libs/mail/mailbox.js'
import type { RecipientDomains } from '#libs/role/recipient-domains.js'
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
  /** The size of the mail that the client has declared (RFC 1870). */
  declaredBytes: number | null
}

/** A recipient in a foreign domain, whose mail is accepted and dropped. */
export const DISCARDED = 'discarded'

/** A recipient without an inbox, for which one is created once its mail has arrived. */
export interface MissingInbox extends FreeAddress {
  state: 'missing'
}

export type ResolvedRecipient = Inbox | MissingInbox | typeof DISCARDED

interface RecipientsOptions {
  log: LogLayout
  inboxes: Pick<MailQueries, 'inboxAt'> & ViewProgress
  views: ConsistentViews
  domains: RecipientDomains
  settings: Pick<Settings, 'maxBacklog' | 'discardFrom'>
  usage: MailUsage
  quotas: Pick<AccountQuotas, 'reserve'>
  now: () => Date
  onError: (error: unknown) => void
}

/** How long a measured backlog is used. */
const BACKLOG_VALID_MS = 250

/** Decides from the views whether mail is accepted, and for which recipients. */
export class Recipients {
  private readonly foreign: Refusal
  private readonly trusted: Networks
  /** A promise while it is measured. */
  private refusalOfBacklog: MaybePromise<Refusal | null> = null
  private measuredAtMs = -Infinity

  constructor(private readonly options: RecipientsOptions) {
    this.foreign = foreignRecipient(options.domains.generated)
    this.trusted = new Networks(options.settings.discardFrom ?? [])
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

  /** The inbox that a recipient belongs to, or what becomes of its mail, or the refusal. Never rejects. */
  resolve(recipient: string, client: Client): MaybePromise<ResolvedRecipient | Refusal> {
    const { domains } = this.options
    for (const domain of domains.generated) {
      const address = addressOfRecipient(recipient, domain)
      if (address !== null) return this.lookUp(address, client, false)
    }
    const domain = domainOf(recipient)
    const owner = domain === null ? 'generated' : domains.ownerOf(domain)
    if (owner === 'generated') return REFUSALS.unknownRecipient
    const { remoteAddress } = client
    const isTrusted = isLoopback(remoteAddress) || this.trusted.has(remoteAddress)
    if (owner === 'first-account' || (isTrusted && domains.unknownRecipients === 'create')) {
      const address = addressOf(recipient)
      return address === null ? REFUSALS.unknownRecipient : this.lookUp(address, client, true)
    }
    return isTrusted && domains.unknownRecipients === 'discard' ? DISCARDED : this.foreign
  }

  /** `isCreated`: whether mail to an unknown address, or one whose inbox has expired, makes an inbox. */
  private async lookUp(
    address: Address,
    { senderKey, declaredBytes }: Client,
    isCreated: boolean,
  ): Promise<Inbox | MissingInbox | Refusal> {
    try {
      const { views, inboxes, usage, quotas, now } = this.options
      const found = await views.find('inbox-events', () => inboxes.inboxAt(address))
      const current = found === null ? null : asOf(found.inbox, now())
      if (isCreated && (current === null || current.state === 'expired')) {
        return { state: 'missing', address, previous: current?.id ?? null }
      }
      if (found === null) return REFUSALS.unknownRecipient
      const { inbox } = found
      let refusal = refusalOf(inbox, now())
      if (refusal === null) {
        const space = await quotas.reserve(inbox.accountId, 'stored-bytes', declaredBytes ?? 1)
        if (isExcess(space)) refusal = REFUSALS.quotaExceeded
        else space.release()
      }
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

/** Why an inbox refuses mail at that time; null if it accepts mail. */
export function refusalOf(inbox: Inbox, now: Date): Refusal | null {
  const current = asOf(inbox, now)
  if (current.state !== 'active') return inboxEndedAt(current)
  // Each dropped mail takes space in the history too.
  const isFull = current.messageCount >= current.maxMessages || current.droppedCount >= current.maxMessages
  return isFull ? REFUSALS.inboxFull : null
}
