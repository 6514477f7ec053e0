import { domainToASCII } from 'node:url'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { firstAccount } from '#libs/engines/first-key.js'
import type { LogReader } from '#libs/ports/event-log/event-log.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { isLoopback } from '#libs/runtime/config/smtp-settings.js'

type DomainSettings = Pick<
  Settings,
  'mailDomain' | 'publicInboxDomain' | 'acceptDomains' | 'unknownRecipients' | 'smtpHost'
>

/**
 * Who has the addresses of a domain. `generated`: they are made by Mayfly. `first-account`: any of them belongs to the
 * first account. `other`: what MAYFLY_UNKNOWN_RECIPIENTS says.
 */
export type DomainOwner = 'generated' | 'first-account' | 'other'

/** Which domains have addresses, according to the settings. */
export class RecipientDomains {
  /** The domains of generated addresses. */
  readonly generated: readonly string[]
  /** What becomes of mail to other domains. */
  readonly unknownRecipients: 'create' | 'discard' | 'reject'
  private first: AccountId | null = null

  constructor(
    private readonly log: LogReader,
    private readonly settings: DomainSettings,
  ) {
    const { mailDomain, publicInboxDomain, acceptDomains, unknownRecipients, smtpHost } = settings
    this.generated = publicInboxDomain === null ? [mailDomain] : [mailDomain, publicInboxDomain]
    const isCaught = isLoopback(smtpHost) && acceptDomains === null
    this.unknownRecipients = unknownRecipients ?? (isCaught ? 'create' : 'reject')
  }

  /** `domain` is in A-labels. */
  ownerOf(domain: string): DomainOwner {
    if (this.generated.some((own) => isInDomain(domain, own))) return 'generated'
    const isAccepted = this.settings.acceptDomains?.some((pattern) => matchesDomain(domain, pattern))
    return isAccepted === true ? 'first-account' : 'other'
  }

  /** The account that was opened first; null if there is none yet. */
  async firstAccount(): Promise<AccountId | null> {
    this.first ??= await firstAccount(this.log)
    return this.first
  }
}

/** Whether a domain is the other one or a subdomain of it. The other may be in Unicode. */
function isInDomain(domain: string, other: string): boolean {
  const ascii = domainToASCII(other)
  return domain === ascii || domain.endsWith(`.${ascii}`)
}

/** Whether a domain is the one of a pattern, or with `*.` one of its subdomains. */
function matchesDomain(domain: string, pattern: string): boolean {
  const lower = pattern.toLowerCase()
  return lower.startsWith('*.') ? domain.endsWith(lower.slice(1)) : domain === lower
}
