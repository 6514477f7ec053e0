import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { planOf, quotasOf, type PlanTable, type Quota } from '#libs/domain/account/access.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { AccountUse } from './inbox-views.js'
import type { AccountQueries, MailQueries } from './queries.js'

/** A quota that has not enough left. */
export interface Excess {
  quota: Quota
  limit: number
  used: number
}

/** A part of a quota that is reserved for something that is not on the log yet. */
export interface QuotaReservation {
  /** Call this once the views, or the log, have this amount of it. */
  fill(amount: number): void
  /** Releases what is not filled. Can be repeated. */
  release(): void
}

interface KnownAccount {
  id: AccountId
  limits: AccountUse
  /** As the views had it at `readAtMs`. */
  used: AccountUse
  /** Filled since then. */
  added: Record<Quota, number>
  reserved: Record<Quota, number>
  readAtMs: number
  reading: Promise<void> | null
}

interface QuotaSources {
  inboxes: Pick<MailQueries, 'accountUse'>
  accounts: Pick<AccountQueries, 'account'>
  plans: PlanTable
}

const MAX_ACCOUNTS = 10_000
/** What was read allows something for this time. */
const VALID_MS = 1_000
/** Before a refusal it is read again, at most this often. */
const PAUSE_MS = 100
const UNLIMITED: AccountUse = { inboxes: Infinity, 'stored-bytes': Infinity }

/**
 * Checks the quotas of accounts against the views, which are read about once a second for an account, and what its owner
 * has added since. It does not know what others, in this process or another one, have added meanwhile, so an account may
 * exceed a quota by what they accept within a second.
 */
export class AccountQuotas {
  private readonly known = new LRUCache<AccountId, KnownAccount>({ max: MAX_ACCOUNTS })

  constructor(private readonly sources: QuotaSources) {}

  /** Rejects if the views can't be read. A refusal follows from views that were read after the call. */
  async reserve(accountId: AccountId, quota: Quota, amount: number): Promise<QuotaReservation | Excess> {
    const calledAtMs = performance.now()
    const account = this.accountOf(accountId)
    await this.readSince(account, calledAtMs - VALID_MS)
    if (excessOf(account, quota, amount) !== null) await this.readSince(account, calledAtMs)
    const excess = excessOf(account, quota, amount)
    if (excess !== null) return excess
    let left = amount
    const take = (some: number) => {
      account.reserved[quota] -= some
      left -= some
    }
    account.reserved[quota] += amount
    return {
      fill(filled) {
        account.added[quota] += filled
        take(Math.min(filled, left))
      },
      release: () => take(left),
    }
  }

  /** Reads the quotas of an account again before the next reservation. Must be called when they have changed. */
  forget(accountId: AccountId): void {
    const account = this.known.get(accountId)
    if (account === undefined) return
    const expire = () => (account.readAtMs = -Infinity)
    expire()
    // A read in progress may lack the change.
    account.reading?.then(expire, expire)
  }

  private accountOf(id: AccountId): KnownAccount {
    const known = this.known.get(id)
    if (known !== undefined) return known
    const none = { inboxes: 0, 'stored-bytes': 0 }
    const added = { limits: UNLIMITED, used: none, added: { ...none }, reserved: { ...none } }
    const account = { id, ...added, readAtMs: -Infinity, reading: null }
    this.known.set(id, account)
    return account
  }

  private async readSince(account: KnownAccount, sinceMs: number): Promise<void> {
    while (account.readAtMs < sinceMs) {
      account.reading ??= this.read(account).finally(() => (account.reading = null))
      await account.reading
    }
  }

  private async read(account: KnownAccount): Promise<void> {
    const waitMs = account.readAtMs + PAUSE_MS - performance.now()
    if (waitMs > 0) await pause(waitMs)
    const { inboxes, accounts, plans } = this.sources
    const readAtMs = performance.now()
    const before = { ...account.added }
    const [used, found] = await Promise.all([inboxes.accountUse(account.id), accounts.account(account.id)])
    // The views of accounts may not show a new one yet.
    account.limits = found === null ? UNLIMITED : quotasOf(planOf(plans, found), found.quotas)
    account.added.inboxes -= before.inboxes
    account.added['stored-bytes'] -= before['stored-bytes']
    Object.assign(account, { used, readAtMs })
  }
}

function excessOf(account: KnownAccount, quota: Quota, amount: number): Excess | null {
  const used = account.used[quota] + account.added[quota] + account.reserved[quota]
  const limit = account.limits[quota]
  return used + amount > limit ? { quota, limit, used } : null
}

export function isExcess(reserved: QuotaReservation | Excess): reserved is Excess {
  return 'limit' in reserved
}
