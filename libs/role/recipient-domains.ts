import { domainToASCII } from 'node:url'
import type { Domain } from '#libs/domain/account/domain.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { firstAccount } from '#libs/engines/first-key.js'
import type { LogReader } from '#libs/ports/event-log/event-log.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'

interface RecipientDomainsOptions {
  log: LogReader
  accounts: Pick<AccountQueries, 'domainHolding'>
  views: Pick<ConsistentViews, 'find'>
  settings: Pick<
    Settings,
    'mailDomain' | 'publicInboxDomain' | 'acceptDomains' | 'unknownRecipients' | 'smtpHost'
  >
}

/**
 * Who has the addresses of a domain: an account that has verified it, perhaps some time ago. `generated`: they are made
 * by Mayfly. `first-account`: any of them belongs to the first account. `other`: what MAYFLY_UNKNOWN_RECIPIENTS says.
 */
export type DomainOwner = Domain | 'generated' | 'first-account' | 'other'

/** Finds out who has the addresses of a domain. */
export class RecipientDomains {
  /** The domains of generated addresses. */
  readonly generated: readonly string[]
  /** The same as A-labels. */
  private readonly generatedNames: readonly string[]
  /** What becomes of mail to other domains. */
  readonly unknownRecipients: 'create' | 'discard' | 'reject'
  private first: AccountId | null = null

  constructor(private readonly options: RecipientDomainsOptions) {
    const { mailDomain, publicInboxDomain, acceptDomains, unknownRecipients, smtpHost } = options.settings
    this.generated = publicInboxDomain === null ? [mailDomain] : [mailDomain, publicInboxDomain]
    this.generatedNames = this.generated.map((each) => domainToASCII(each))
    const isCaught = isLoopback(smtpHost) && acceptDomains === null
    this.unknownRecipients = unknownRecipients ?? (isCaught ? 'create' : 'reject')
  }

  /** `domain` is in A-labels. Throws ViewsCatchingUpError and the errors of the views. */
  async ownerOf(domain: string): Promise<DomainOwner> {
    const { accounts, views, settings } = this.options
    if (this.generatedNames.includes(domain)) return 'generated'
    const held = await views.find('account-events', () => accounts.domainHolding(domain))
    if (held !== null) return held
    if (this.generatedNames.some((each) => domain.endsWith(`.${each}`))) return 'generated'
    const isAccepted = settings.acceptDomains?.some((pattern) => matchesDomain(domain, pattern))
    return isAccepted === true ? 'first-account' : 'other'
  }

  /** The account that was opened first; null if there is none yet. */
  async firstAccount(): Promise<AccountId | null> {
    this.first ??= await firstAccount(this.options.log)
    return this.first
  }
}

/** Whether an inbox belongs to an account that had its domain before the owner. It gets no more mail. */
export function isOfFormerOwner({ accountId }: Inbox, owner: DomainOwner): boolean {
  return typeof owner === 'object' && owner.accountId !== accountId
}

/** Whether a domain is the one of a pattern, or with `*.` one of its subdomains. */
function matchesDomain(domain: string, pattern: string): boolean {
  const lower = pattern.toLowerCase()
  return lower.startsWith('*.') ? domain.endsWith(lower.slice(1)) : domain === lower
}
