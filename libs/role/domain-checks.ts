import { isDeepStrictEqual } from 'node:util'
import {
  decideDomain,
  type Domain,
  type DomainChecked,
  type DomainEvent,
} from '#libs/domain/account/domain.js'
import type { DomainDns } from '#libs/mail/domain-records.js'
import type { Attribution } from '#libs/ports/event-log/cloud-event.js'
import type { AccountQueries } from '#libs/ports/read-model/queries.js'

export interface DomainChecksOptions {
  dns: DomainDns
  accounts: Pick<AccountQueries, 'domainHolding'>
  /** Resolves once the event is durable. */
  record: (event: DomainEvent, by: Attribution) => Promise<unknown>
  now: () => Date
}

/** Results that were the same before are recorded at most this often: the events are kept for good. */
const REPEATED_AFTER_MS = 10_000

/** Checks the DNS records of domains, and records the results. */
export class DomainChecks {
  constructor(private readonly options: DomainChecksOptions) {}

  /**
   * Resolves with the time of the results once they are durable; null for a hosted domain, and if no name server gave a
   * clear answer. If another event of the domain comes first on the log, they are ignored. If the domain is proved while
   * another one holds its name, the holder is checked first: the name passes on only if the TXT record of the holder is
   * absent.
   */
  async check(domain: Domain, by: Attribution = ownerOf(domain)): Promise<Date | null> {
    const { dns, accounts } = this.options
    if (domain.isHosted) return null
    const results = await dns.check(domain)
    if (results.ownership?.status === 'valid') {
      const holder = await accounts.domainHolding(domain.name)
      if (holder !== null && holder.id !== domain.id && holder.name === domain.name) {
        await this.record(holder, await dns.check(holder), ownerOf(holder))
      }
    }
    return this.record(domain, results, by)
  }

  private async record(
    domain: Domain,
    results: DomainChecked['results'],
    by: Attribution,
  ): Promise<Date | null> {
    const { id: domainId, accountId, checkedAt, nextCheckAt } = domain
    const now = this.options.now()
    const hasAnswers = Object.keys(results).length > 0
    if (hasAnswers) {
      const isRecent = checkedAt !== null && now.getTime() - checkedAt.getTime() < REPEATED_AFTER_MS
      if (isRecent && isDeepStrictEqual({ ...domain.checks, ...results }, domain.checks)) return checkedAt
    }
    // Without answers, only the time of the next check changes.
    else if (nextCheckAt === null || nextCheckAt > now) return null
    const { events } = decideDomain(domain, { type: 'RecordCheck', accountId, domainId, results, now })
    for (const event of events) await this.options.record(event, by)
    return hasAnswers ? now : null
  }
}

function ownerOf({ accountId, environment }: Domain): Attribution {
  return { accountId, environment, keyId: null }
}
