import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { planOf, type PlanTable } from '#libs/domain/account/access.js'
import {
  isMailQuota,
  quotaName,
  quotaScopesOf,
  quotasOf,
  type MailQuota,
} from '#libs/domain/account/quota.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { UsedQuota } from './inbox-views.js'
import type { AccountQueries, MailQueries } from './queries.js'

/** Whose quotas count: the owner of an inbox, with the key that created it. */
export interface QuotaOwner {
  accountId: AccountId
  environment: string
  keyId: KeyId
}

/** A part of a quota that is reserved for something that is not on the log yet. */
export interface QuotaReservation {
  /** Call this once the views, or the log, have this amount of it. */
  fill(amount: number): void
  /** Releases what is not filled. Can be repeated. */
  release(): void
}

/** `used` is as the views had it when they were last read. */
interface KnownQuota extends UsedQuota {
  /** Filled since then. */
  added: number
  reserved: number
}

interface KnownAccount {
  id: AccountId
  /** By name. */
  quotas: ReadonlyMap<string, KnownQuota>
  isSuspended: boolean
  readAtMs: number
  reading: Promise<void> | null
}

interface QuotaSources {
  inboxes: Pick<MailQueries, 'usedQuotas'>
  accounts: Pick<AccountQueries, 'account'>
  plans: PlanTable
}

const MAX_ACCOUNTS = 10_000
/** What was read allows something for this time. */
const VALID_MS = 1_000
/** Before a refusal it is read again, at most this often. */
const PAUSE_MS = 100

/**
 * Checks the quotas of inboxes and mail of accounts, and whether they are suspended, against the views, which are read about
 * once a second for an account, and what its owner has added since. It does not know what others, in this process or another
 * one, have added meanwhile, so an account may exceed a quota by what they accept within a second.
 */
export class AccountQuotas {
  private readonly known = new LRUCache<AccountId, KnownAccount>({ max: MAX_ACCOUNTS })

  constructor(private readonly sources: QuotaSources) {}

  /**
   * Resolves with the quota that has not enough left, if there is one. Rejects if the views can't be read. A refusal
   * follows from views that were read after the call.
   */
  async reserve(owner: QuotaOwner, quota: MailQuota, amount: number): Promise<QuotaReservation | UsedQuota> {
    const calledAtMs = performance.now()
    const account = this.accountOf(owner.accountId)
    const concerned = () =>
      quotaScopesOf(owner).flatMap((scope) => account.quotas.get(quotaName({ quota, scope })) ?? [])
    const excess = () => concerned().find((each) => usedOf(each) + amount > each.limit)
    await this.readSince(account, calledAtMs - VALID_MS)
    if (excess() !== undefined) await this.readSince(account, calledAtMs)
    const exceeded = excess()
    if (exceeded !== undefined) return { ...exceeded, used: usedOf(exceeded) }
    const reserved = concerned()
    let left = 0
    const hold = (more: number) => {
      for (const each of reserved) each.reserved += more
      left += more
    }
    hold(amount)
    return {
      fill(filled) {
        for (const each of reserved) each.added += filled
        hold(-Math.min(filled, left))
      },
      release: () => hold(-left),
    }
  }

  /** Whether the account is suspended. True follows from views that were read after the call, as a refusal does. */
  async isSuspended(accountId: AccountId): Promise<boolean> {
    const calledAtMs = performance.now()
    const account = this.accountOf(accountId)
    await this.readSince(account, calledAtMs - VALID_MS)
    if (account.isSuspended) await this.readSince(account, calledAtMs)
    return account.isSuspended
  }

  /** Applies a change of an account's quotas here at once. Without it, and elsewhere, that takes up to a second. */
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
    const account = { id, quotas: new Map(), isSuspended: false, readAtMs: -Infinity, reading: null }
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
    const added = new Map([...account.quotas].map(([name, quota]) => [name, quota.added]))
    const found = await accounts.account(account.id)
    // The views of accounts may not show a new one yet.
    const limits = found === null ? [] : quotasOf(planOf(plans, found), found.quotas)
    const ofMail = limits.filter(({ quota }) => isMailQuota(quota))
    const used = await inboxes.usedQuotas(account.id, ofMail)
    // Reservations have the objects, so those of the same name stay.
    const quotas = used.map((quota) => {
      const name = quotaName(quota)
      const known = account.quotas.get(name) ?? { added: 0, reserved: 0 }
      const rest = { added: known.added - (added.get(name) ?? 0) }
      return [name, Object.assign(known, quota, rest)] as const
    })
    const isSuspended = found !== null && found.suspendedAt !== null
    Object.assign(account, { quotas: new Map(quotas), isSuspended, readAtMs })
  }
}

function usedOf({ used, added, reserved }: KnownQuota): number {
  return used + added + reserved
}

export function isExcess(reserved: QuotaReservation | UsedQuota): reserved is UsedQuota {
  return 'limit' in reserved
}
