import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { planOf, type PlanTable } from '#libs/domain/account/access.js'
import {
  isMailQuota,
  kindOf,
  MAIL_QUOTAS,
  quotaName,
  quotaScopesOf,
  quotasOf,
  type CountedQuota,
  type MailQuota,
  type QuotaAmounts,
  type QuotaLimit,
} from '#libs/domain/account/quota.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import type { AccountQueries, MailQueries, WebhookQueries } from './queries.js'

/** A quota with how much is used of it. */
export interface UsedQuota extends QuotaLimit {
  used: number
}

export interface ExceededQuota extends UsedQuota {
  /** How much more of it was to be used. */
  wanted: number
}

export interface UseQueries {
  inboxes: Pick<MailQueries, 'usedQuotas'>
  accounts: Pick<AccountQueries, 'domainNames' | 'memberLookups'>
  webhooks: Pick<WebhookQueries, 'countWebhooks'>
}

/** Any quotas of an account with how much is used of each, in their order. */
export async function usedQuotas(
  { inboxes, accounts, webhooks }: UseQueries,
  accountId: AccountId,
  limits: readonly QuotaLimit[],
  now: Date,
): Promise<UsedQuota[]> {
  const ofMail = limits.filter(isOfMail)
  const amounts = ofMail.length === 0 ? [] : await inboxes.usedQuotas(accountId, ofMail, now)
  const count: Record<CountedQuota, () => Promise<number>> = {
    webhooks: () => webhooks.countWebhooks(accountId),
    domains: async () => (await accounts.domainNames(accountId)).length,
    members: async () => (await accounts.memberLookups(accountId)).length,
  }
  const used = (limit: QuotaLimit) =>
    isOfMail(limit) ? amounts[ofMail.indexOf(limit)] : count[limit.quota as CountedQuota]()
  return Promise.all(limits.map(async (limit) => ({ ...limit, used: (await used(limit)) ?? 0 })))
}

function isOfMail(limit: QuotaLimit): limit is QuotaLimit & { quota: MailQuota } {
  return isMailQuota(limit.quota)
}

/** Whose quotas count: the owner of an inbox, with the key that created it. */
export interface QuotaOwner {
  accountId: AccountId
  environment: string
  keyId: KeyId
}

/** What is reserved of quotas for something that is not on the log yet. */
export interface QuotaReservation {
  /** Call this once the views, or the log, have this part of it. */
  fill(part: QuotaAmounts): void
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
  now: () => Date
}

const MAX_ACCOUNTS = 10_000
/** What was read allows something for this time. */
const VALID_MS = 1_000
/** Before a refusal it is read again, at most this often. */
const PAUSE_MS = 100
/** How often it is read again while something is reserved. */
const MAX_READS = 10

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
  async reserve(owner: QuotaOwner, amounts: QuotaAmounts): Promise<QuotaReservation | ExceededQuota> {
    const calledAtMs = performance.now()
    const account = this.accountOf(owner.accountId)
    const scopes = quotaScopesOf(owner)
    const names = MAIL_QUOTAS.flatMap((quota) => {
      const amount = amounts[quota]
      return amount === undefined
        ? []
        : scopes.map((scope) => ({ quota, amount, name: quotaName({ quota, scope }) }))
    })
    const concerned = () =>
      names.flatMap(({ name, quota, amount }) => {
        const known = account.quotas.get(name)
        return known === undefined ? [] : [{ known, quota, amount }]
      })
    // The one that has nothing left for the longest time.
    const excess = () => {
      const exceeded = concerned().filter(({ known, amount }) => usedOf(known) + amount > known.limit)
      return exceeded.find(({ quota }) => kindOf(quota).isDaily) ?? exceeded[0]
    }
    await this.readSince(account, calledAtMs - VALID_MS)
    let exceeded = excess()
    const readAgain = async (sinceMs: number) => {
      await this.readSince(account, sinceMs)
      return excess()
    }
    if (exceeded !== undefined) exceeded = await readAgain(calledAtMs)
    // What others have reserved may be in the views already, and is then counted twice until they have filled it.
    for (let reads = 0; (exceeded?.known.reserved ?? 0) > 0 && reads < MAX_READS; reads += 1) {
      exceeded = await readAgain(performance.now())
    }
    if (exceeded !== undefined) {
      const { known, amount: wanted } = exceeded
      return { ...known, used: usedOf(known), wanted }
    }
    const reserved = concerned().map((each) => ({ ...each, held: 0 }))
    const hold = (each: (typeof reserved)[number], more: number) => {
      each.known.reserved += more
      each.held += more
    }
    for (const each of reserved) hold(each, each.amount)
    return {
      fill(part) {
        for (const each of reserved) {
          const filled = part[each.quota] ?? 0
          each.known.added += filled
          hold(each, -Math.min(filled, each.held))
        }
      },
      release() {
        for (const each of reserved) hold(each, -each.held)
      },
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
    const { inboxes, accounts, plans, now } = this.sources
    const readAtMs = performance.now()
    const added = new Map([...account.quotas].map(([name, quota]) => [name, quota.added]))
    const found = await accounts.account(account.id)
    // The views of accounts may not show a new one yet.
    const limits = found === null ? [] : quotasOf(planOf(plans, found), found.quotas)
    const ofMail = limits.filter(isOfMail)
    const amounts = await inboxes.usedQuotas(account.id, ofMail, now())
    // Reservations have the objects, so those of the same name stay.
    const quotas = ofMail.map((limit, index) => {
      const name = quotaName(limit)
      const known = account.quotas.get(name) ?? { added: 0, reserved: 0 }
      const rest = { used: amounts[index] ?? 0, added: known.added - (added.get(name) ?? 0) }
      return [name, Object.assign(known, limit, rest)] as const
    })
    const isSuspended = found !== null && found.suspendedAt !== null
    Object.assign(account, { quotas: new Map(quotas), isSuspended, readAtMs })
  }
}

function usedOf({ used, added, reserved }: KnownQuota): number {
  return used + added + reserved
}

export function isExcess(reserved: QuotaReservation | ExceededQuota): reserved is ExceededQuota {
  return 'limit' in reserved
}
