import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { planWithLimits, unknownPlan, type Plan, type PlanTable } from '#libs/domain/account/access.js'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Views } from '../views.js'

/*
 * Finds the key of a secret, and the plan of its account.
 */

/** A key with its account, as read from the views. */
interface KnownKey {
  account: Account
  key: ApiKey
}

/** A changed key applies everywhere after this time, even if signals are lost. */
const MAX_AGE_MS = 500
const MAX_LOOKUPS = 10_000

/**
 * Finds keys by the hash of a secret, and caches them for half a second, so that a busy key costs two lookups a second
 * instead of several for each request. A hash without a key is not cached, so a new key works at once.
 */
export class KnownKeys {
  private readonly lookups = new LRUCache<string, Promise<KnownKey | null>>({
    max: MAX_LOOKUPS,
    ttl: MAX_AGE_MS,
  })

  constructor(private readonly views: Pick<Views, 'readAccounts'>) {}

  /**
   * Null if no key ever had this secret. Rejects with ViewsCatchingUpError if the views may lack the key or its
   * revocation, and with the errors of the views.
   */
  find(secretHash: string): Promise<KnownKey | null> {
    const cached = this.lookups.get(secretHash)
    if (cached !== undefined) return cached
    const found = this.views.readAccounts((accounts) => accounts.keyByHash(secretHash))
    this.lookups.set(secretHash, found)
    const forget = () => {
      if (this.lookups.peek(secretHash) === found) this.lookups.delete(secretHash)
    }
    found.then((known) => {
      if (known === null) forget()
    }, forget)
    return found
  }

  /** Must be called when an account or a key has changed. */
  forgetAll(): void {
    this.lookups.clear()
  }
}

/** The configured plans, and the plan of each account. */
export class Plans {
  /** Unknown plans that were logged. Each is logged once. */
  private readonly logged = new Set<string>()

  constructor(
    private readonly table: PlanTable,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {}

  get names(): string[] {
    return [...this.table.keys()]
  }

  named(name: string): Plan | null {
    return this.table.get(name) ?? null
  }

  /** The plan of an account. If it is no longer configured, the account keeps its data but has no API access. */
  of(account: Pick<Account, 'plan' | 'limits'>): Plan {
    const plan = this.find(account)
    if (plan !== null) return plan
    const { plan: name } = account
    if (!this.logged.has(name)) {
      this.logged.add(name)
      this.logger.warn(
        { plan: name, configured: this.names },
        'accounts are on a plan that is not configured: they have no API access',
      )
    }
    return unknownPlan(name)
  }

  /** The plan of an account with the account's own limits; null if it is not configured. */
  find({ plan: name, limits }: Pick<Account, 'plan' | 'limits'>): Plan | null {
    const plan = this.named(name)
    return plan && planWithLimits(plan, limits)
  }
}
