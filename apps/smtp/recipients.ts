import { LRUCache } from 'lru-cache'
import type { Domain } from '#libs/domain/account/domain.js'
import { usedByMail } from '#libs/domain/account/quota.js'
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
import type { AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { ViewProgress } from '#libs/ports/read-model/view-store.js'
import { addressOf, domainOf } from '#libs/mail/mailbox.js'
import { isOfFormerOwner, type DomainOwner, type RecipientDomains } from '#libs/role/recipient-domains.js'
import type { RecipientOwner, RefusedMailSender } from '#libs/role/refused-mail.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'
import { Networks } from '#libs/runtime/remote-address.js'
import type { MailUsage } from './journal.js'
import { foreignRecipient, inboxEndedAt, REFUSALS, type MaybePromise, type Refusal } from './replies.js'
import type { SenderKey } from './smtp-auth.js'

/** A RCPT TO. */
interface Attempt {
  /** The addresses as the client sent them. */
  mailFrom: string
  rcptTo: string
  remoteAddress: string
  /** Null if the client did not authenticate with an API key. */
  senderKey: SenderKey | null
  /** The size of the mail that the client has declared (RFC 1870). */
  declaredBytes: number | null
}

/** A recipient in a foreign domain, whose mail is accepted and dropped. */
export const DISCARDED = 'discarded'

/** A recipient without an inbox, for which one is created once its mail has arrived. */
export interface MissingInbox extends FreeAddress {
  state: 'missing'
  /** Whose catch-all makes it; null in the first account. */
  domain: Domain | null
}

export type ResolvedRecipient = Inbox | MissingInbox | typeof DISCARDED

interface RecipientsOptions {
  log: LogLayout
  inboxes: Pick<MailQueries, 'inbox' | 'inboxAt'> & ViewProgress
  views: ConsistentViews
  domains: RecipientDomains
  settings: Pick<Settings, 'maxBacklog' | 'discardFrom'>
  usage: MailUsage
  quotas: Pick<AccountQuotas, 'exceeded' | 'isSuspended'>
  refusedMail: Pick<RefusedMailSender, 'add'>
  now: () => Date
  onError: (error: unknown) => void
}

/** How long a measured backlog is used. */
const BACKLOG_VALID_MS = 250
/** How long the owner of a domain is remembered, so that a flood of RCPT TO reads it once a second. */
const OWNER_VALID_MS = 1_000
const MAX_OWNERS = 1_000
/** Mail to a domain that has lapsed is answered 451 for this time, then 550. */
const LAPSED_RETRY_MS = 72 * 3_600_000

/** Decides from the views whether mail is accepted, and for which recipients. */
export class Recipients {
  private readonly foreign: Refusal
  private readonly trusted: Networks
  private readonly owners = new LRUCache<string, DomainOwner>({
    max: MAX_OWNERS,
    ttl: OWNER_VALID_MS,
    fetchMethod: (domain) => this.options.domains.ownerOf(domain),
    ignoreFetchAbort: true,
  })
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
      return refusalOfError(error, this.options.onError)
    }
  }

  /** The inbox that a mailbox belongs to, or what becomes of its mail, or the refusal. Never rejects. */
  async resolve(mailbox: string, attempt: Attempt): Promise<ResolvedRecipient | Refusal> {
    try {
      for (const domain of this.options.domains.generated) {
        const address = addressOfRecipient(mailbox, domain)
        if (address !== null) return await this.accept(address, 'generated', attempt)
      }
      return await this.resolveOther(mailbox, attempt)
    } catch (error) {
      // Not listed: the recipient may belong to any account.
      return refusalOfError(error, this.options.onError)
    }
  }

  /** A mailbox that is no generated address. */
  private async resolveOther(mailbox: string, attempt: Attempt): Promise<ResolvedRecipient | Refusal> {
    const { domains, now } = this.options
    const domain = domainOf(mailbox)
    const owner = domain === null ? 'generated' : await this.owners.forceFetch(domain)
    if (owner === 'generated') return this.refuse(owner, attempt, REFUSALS.unknownRecipient)
    if (owner === 'other') {
      const { remoteAddress } = attempt
      const isTrusted = isLoopback(remoteAddress) || this.trusted.has(remoteAddress)
      if (!isTrusted || domains.unknownRecipients === 'reject') {
        return this.refuse(owner, attempt, this.foreign)
      }
      if (domains.unknownRecipients === 'discard') return DISCARDED
    } else if (owner !== 'first-account' && owner.state === 'lapsed') {
      const lapsedMs = now().getTime() - (owner.lapsedAt?.getTime() ?? 0)
      const refusal = lapsedMs < LAPSED_RETRY_MS ? REFUSALS.domainLapsed : REFUSALS.domainLost
      return this.refuse(owner, attempt, refusal)
    }
    const address = addressOf(mailbox)
    return address === null
      ? this.refuse(owner, attempt, REFUSALS.unknownRecipient)
      : this.accept(address, owner, attempt)
  }

  /** The inbox that mail to the address arrives in, in any state; null if there is none. */
  private async inboxAt(address: Address, owner: DomainOwner): Promise<Inbox | MissingInbox | null> {
    const { views, inboxes, now } = this.options
    const domain = typeof owner === 'string' ? null : owner
    const catchAll = owner === 'generated' ? null : (domain?.catchAll ?? ({ action: 'create' } as const))
    const read = () => inboxes.inboxAt(address)
    // Before it creates an inbox, AutoInboxes reads this again from complete views.
    const found = catchAll?.action === 'create' ? await read() : await views.find('inbox-events', read)
    const inbox = found === null || isOfFormerOwner(found.inbox, owner) ? null : asOf(found.inbox, now())
    if (catchAll === null || (inbox !== null && inbox.state !== 'expired')) return inbox
    switch (catchAll.action) {
      case 'create':
        return { state: 'missing', address, previous: found?.inbox.id ?? null, domain }
      case 'deliver': {
        const { inboxId } = catchAll
        const row = await views.find(inboxId, () => inboxes.inbox(inboxId))
        return row === null || isOfFormerOwner(row.inbox, owner) ? null : row.inbox
      }
      case 'reject':
        return inbox
    }
  }

  private async accept(
    address: Address,
    owner: DomainOwner,
    attempt: Attempt,
  ): Promise<Inbox | MissingInbox | Refusal> {
    const inbox = await this.inboxAt(address, owner)
    if (inbox === null) return this.refuse(owner, attempt, REFUSALS.unknownRecipient)
    const { usage, quotas, domains, now } = this.options
    if (inbox.state === 'missing') {
      const accountId = inbox.domain?.accountId ?? (await domains.firstAccount())
      const isSuspended = accountId !== null && (await quotas.isSuspended(accountId))
      return isSuspended ? this.refuse(owner, attempt, REFUSALS.accountSuspended) : inbox
    }
    const { senderKey, declaredBytes } = attempt
    let refusal = refusalOf(inbox, now())
    // A suspended account is the reason also for a full inbox.
    const mayReceive = refusal === null || refusal === REFUSALS.inboxFull
    if (mayReceive && (await quotas.isSuspended(inbox.accountId))) refusal = REFUSALS.accountSuspended
    if (refusal === null) {
      const exceeded = await quotas.exceeded(inbox, usedByMail(Math.max(declaredBytes ?? 1, 1)))
      if (exceeded !== null) refusal = REFUSALS.quotaExceeded
    }
    if (refusal === null) return inbox
    usage.refused(inbox, senderKey, refusal)
    return this.refuse(inbox, attempt, refusal)
  }

  private refuse(owner: RecipientOwner, attempt: Attempt, refusal: Refusal): Refusal {
    this.options.refusedMail.add(owner, attempt, refusal)
    return refusal
  }
}

/** The refusal while the views can't be read. `onError` is not called if they are only catching up. */
export function refusalOfError(error: unknown, onError: (error: unknown) => void): Refusal {
  if (error instanceof ViewsCatchingUpError) return REFUSALS.catchingUp
  onError(error)
  return REFUSALS.readModelUnavailable
}

/** Why an inbox refuses mail at that time; null if it accepts mail. */
export function refusalOf(inbox: Inbox, now: Date): Refusal | null {
  const current = asOf(inbox, now)
  if (current.state !== 'active') return inboxEndedAt(current)
  // Each dropped mail takes space in the history too.
  const isFull = current.messageCount >= current.maxMessages || current.droppedCount >= current.maxMessages
  return isFull ? REFUSALS.inboxFull : null
}
