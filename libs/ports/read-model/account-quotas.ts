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
import type { LogLayout, Position } from '#libs/ports/event-log/event-log.js'
import type { ConsistentViews } from './consistent-views.js'
import type { AccountQueries, MailQueries, WebhookQueries } from './queries.js'
import type { ViewProgress } from './view-store.js'

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
  /** Call this once the log has this part of it, in a record of inbox-events. */
  fill(part: QuotaAmounts, position: Position): void
  /** Releases what is not filled. Can be repeated. */
  release(): void
}

/** How much of a quota a record uses. */
interface Appended {
  offset: number
  amount: number
}

/** `used` is as the views had it when they were last read. */
interface KnownQuota extends UsedQuota {
  /** What was appended here and may not be in `used`, by partition, and the sum of it. */
  appended: Map<number, Appended[]>
  added: number
  reserved: number
}

interface KnownAccount {
  id: AccountId
  /** By name. */
  quotas: ReadonlyMap<string, KnownQuota>
  /** How many records the views lacked when they were last read, of any account. */
  lacking: number
  isSuspended: boolean
  readAtMs: number
  reading: Promise<void> | null
}

interface QuotaSources {
  log: Pick<LogLayout, 'topology'>
  views: Pick<ConsistentViews, 'waitForLatest'>
  inboxes: Pick<MailQueries, 'usedQuotas'> & ViewProgress
  accounts: Pick<AccountQueries, 'account'>
  plans: PlanTable
  now: () => Date
}

const MAX_ACCOUNTS = 10_000
/** What was read allows something for this time, while more than the margin is left. */
const VALID_MS = 1_000
/** More than all processes together are likely to use in that time, at least. */
const MARGIN = { count: 1_000, bytes: 64 * 1024 * 1024, share: 0.1 }
/** Of a record that the views lack. */
const LIKELY_BYTES = 64 * 1024
/** Between reads of an account. */
const PAUSE_MS = 10
/** A refusal waits this long for what is reserved, or was just appended. */
const SETTLE_MS = 1_000
/** Of a quota and partition. Only stopped views lack more. */
const MAX_APPENDED = 1_000

/**
 * Checks the quotas of inboxes and mail of accounts, and whether they are suspended, against the views and what its owner
 * has added that they don't show yet. An account with much left is read about once a second. If little is left, the views
 * are read for each reservation, and must show everything that the log has, if that could exceed the quota. So an
 * account exceeds a quota only by what others, in this process or another one, are appending at the same moment.
 */
export class AccountQuotas {
  private readonly known = new LRUCache<AccountId, KnownAccount>({ max: MAX_ACCOUNTS })

  constructor(private readonly sources: QuotaSources) {}

  /**
   * Resolves with the quota that has not enough left, if there is one. A refusal follows from views that show what the log
   * had at the call. Rejects if the views or the log can't be read, and with ViewsCatchingUpError if the views don't
   * advance.
   */
  async reserve(owner: QuotaOwner, amounts: QuotaAmounts): Promise<QuotaReservation | ExceededQuota> {
    const calledAtMs = performance.now()
    const account = this.accountOf(owner.accountId)
    const scopes = quotaScopesOf(owner)
    const names = MAIL_QUOTAS.flatMap((quota) => {
      const amount = amounts[quota]
      return amount === undefined
        ? []
        : scopes.map((scope) => ({ amount, name: quotaName({ quota, scope }) }))
    })
    const concerned = () =>
      names.flatMap(({ name, amount }) => {
        const known = account.quotas.get(name)
        return known === undefined ? [] : [{ known, amount }]
      })
    /** The quotas with less left than this amount and that much more. */
    const exceeded = (more: (known: KnownQuota) => number = () => 0) =>
      concerned().filter(({ known, amount }) => usedOf(known) + amount + more(known) > known.limit)
    await this.readSince(account, calledAtMs - VALID_MS)
    if (exceeded((known) => marginOf(known, account)).length > 0) {
      await this.readSince(account, calledAtMs)
      if (exceeded((known) => atMostIn(account.lacking, known)).length > 0) {
        await this.sources.views.waitForLatest('inbox-events')
        await this.readSince(account, performance.now())
      }
    }
    const untilMs = performance.now() + SETTLE_MS
    // What is reserved may be in the views already, and is then counted twice until it is filled.
    while (exceeded().some(({ known }) => isUnsettled(known)) && performance.now() < untilMs) {
      await this.readSince(account, performance.now())
    }
    const all = exceeded()
    // The one that has nothing left for the longest time.
    const refusing = all.find(({ known }) => kindOf(known.quota).isDaily) ?? all[0]
    if (refusing !== undefined) {
      const { known, amount: wanted } = refusing
      return { ...known, used: usedOf(known), wanted }
    }
    const reserved = concerned().map((each) => ({ ...each, held: 0 }))
    const hold = (each: (typeof reserved)[number], more: number) => {
      each.known.reserved += more
      each.held += more
    }
    for (const each of reserved) hold(each, each.amount)
    return {
      fill(part, position) {
        for (const each of reserved) {
          const amount = part[each.known.quota as MailQuota] ?? 0
          addAppended(each.known, position, amount)
          hold(each, -Math.min(amount, each.held))
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
    const unread = { lacking: 0, isSuspended: false, readAtMs: -Infinity, reading: null }
    const account = { id, quotas: new Map(), ...unread }
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
    const { log, inboxes, accounts, plans, now } = this.sources
    const readAtMs = performance.now()
    const [found, { partitions }] = await Promise.all([
      accounts.account(account.id),
      log.topology('inbox-events'),
    ])
    const progress = await Promise.all(partitions.map((each) => inboxes.progress(each)))
    const positions = partitions.map(({ first }, index) => progress[index]?.position ?? first)
    // The views of accounts may not show a new one yet.
    const limits = found === null ? [] : quotasOf(planOf(plans, found), found.quotas)
    const ofMail = limits.filter(isOfMail)
    // Read after the positions, so it has at least what is before them.
    const amounts = await inboxes.usedQuotas(account.id, ofMail, now())
    // Reservations have the objects, so those of the same name stay.
    const quotas = ofMail.map((limit, index) => {
      const name = quotaName(limit)
      const known = account.quotas.get(name) ?? { appended: new Map(), added: 0, reserved: 0 }
      for (const [at, { partition }] of partitions.entries()) dropShown(known, partition, positions[at] ?? 0)
      return [name, Object.assign(known, limit, { used: amounts[index] ?? 0 })] as const
    })
    const lacking = partitions.reduce((sum, { end }, at) => sum + Math.max(end - (positions[at] ?? 0), 0), 0)
    const isSuspended = found !== null && found.suspendedAt !== null
    Object.assign(account, { quotas: new Map(quotas), lacking, isSuspended, readAtMs })
  }
}

/** What may be used until the views are read again, and of what they lack. */
function marginOf({ quota, limit }: KnownQuota, { lacking }: KnownAccount): number {
  const isBytes = quota === 'stored-bytes'
  const least = isBytes ? MARGIN.bytes : MARGIN.count
  return Math.max(least, limit * MARGIN.share) + lacking * (isBytes ? LIKELY_BYTES : 1)
}

/** The most that so many records use: an inbox or a mail each, but any number of bytes. */
function atMostIn(records: number, { quota }: KnownQuota): number {
  if (records === 0) return 0
  return quota === 'stored-bytes' ? Infinity : records
}

function addAppended(known: KnownQuota, { partition, offset }: Position, amount: number): void {
  if (amount === 0) return
  known.added += amount
  const all = known.appended.get(partition) ?? []
  const last = all.at(-1)
  // Counted for longer than necessary, but not for good: before a refusal, the views must show all of it.
  if (last !== undefined && all.length >= MAX_APPENDED) {
    last.offset = Math.max(last.offset, offset)
    last.amount += amount
  } else all.push({ offset, amount })
  known.appended.set(partition, all)
}

function dropShown(known: Pick<KnownQuota, 'appended' | 'added'>, partition: number, position: number): void {
  const all = known.appended.get(partition) ?? []
  const left = all.filter(({ offset }) => offset >= position)
  known.added -= amountOf(all) - amountOf(left)
  if (left.length > 0) known.appended.set(partition, left)
  else known.appended.delete(partition)
}

function amountOf(records: readonly Appended[]): number {
  return records.reduce((sum, { amount }) => sum + amount, 0)
}

/** Whether some of it may be in `used` too. */
function isUnsettled({ reserved, added }: KnownQuota): boolean {
  return reserved + added > 0
}

function usedOf({ used, added, reserved }: KnownQuota): number {
  return used + added + reserved
}

export function isExcess(reserved: QuotaReservation | ExceededQuota): reserved is ExceededQuota {
  return 'limit' in reserved
}
