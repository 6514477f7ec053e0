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
import { SharedRun } from '#libs/runtime/timing.js'
import { readProgress, ViewsCatchingUpError, type ConsistentViews } from './consistent-views.js'
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

/** `used` is as the views had it when they were last read. */
interface KnownQuota extends UsedQuota {
  /** What was appended here and may not be in `used`. */
  appended: number
  reserved: number
}

/** A record that was appended here, with how much it uses of each quota. */
interface AppendedRecord extends Position {
  uses: { known: KnownQuota; amount: number }[]
}

interface KnownAccount {
  id: AccountId
  /** By name. */
  quotas: ReadonlyMap<string, KnownQuota>
  /** Those that the views did not show when they were last read. */
  appended: AppendedRecord[]
  isSuspended: boolean
  /** What the views lacked when they were last read. */
  views: ViewsState
  readAtMs: number
  reading: Promise<void> | null
}

/** How far the views of inbox-events were, and the log. */
interface ViewsState {
  positions: ReadonlyMap<number, number>
  ends: ReadonlyMap<number, number>
  /** When the views of each partition were begun. */
  begun: string
  /** How many records the log had that the views did not show, of any account. */
  missing: number
  /** Everything that was appended before this time was shown, on the clock of `performance.now()`. */
  shownUntilMs: number
  readAtMs: number
}

interface QuotaSources {
  log: Pick<LogLayout, 'topology'>
  views: Pick<ConsistentViews, 'readComplete'>
  inboxes: Pick<MailQueries, 'usedQuotas'> & ViewProgress
  accounts: Pick<AccountQueries, 'account'>
  plans: PlanTable
  /** The size of the largest mail. */
  maxMessageBytes: number
  now: () => Date
}

const MAX_ACCOUNTS = 10_000
/** How long totals are used while much is left. */
const VALID_MS = 1_000
/** While the views lag by less, what they lack is within the margin. */
const MAX_LAG_MS = 2_000
/** What all processes together may use of a quota in that time, at least; and as a part of the limit. */
const MARGIN = { count: 1_000, mails: 16, share: 0.1 }
/** Between two reads of an account. */
const PAUSE_MS = 10
/** How long a reservation waits for the views. */
const MAX_WAIT_MS = 2_000
/** How long a refusal waits for other reservations, which may be released. */
const SETTLE_MS = 1_000
const CHECK_AGAIN_MS = { first: 5, most: 200 }
const NOTHING_READ: ViewsState = {
  positions: new Map(),
  ends: new Map(),
  ...{ begun: '', missing: 0, shownUntilMs: -Infinity, readAtMs: -Infinity },
}

/**
 * Checks the quotas of inboxes and mail of accounts, and whether they are suspended. Totals are read from the views; what
 * was appended here is added until the views show it. While much is left of a quota, totals of the last second are used.
 * Otherwise they are read for each reservation; and if what the views lack could exceed the quota, the views must first
 * show it. So an account exceeds a quota only by what others, in this process or another one, append at the same moment.
 */
export class AccountQuotas {
  private readonly known = new LRUCache<AccountId, KnownAccount>({ max: MAX_ACCOUNTS })
  private readonly viewsState = new SharedRun(() => this.readViewsState(), 0)
  /** As it was when the views had last reached the ends of the one before. */
  private reached = NOTHING_READ

  constructor(private readonly sources: QuotaSources) {}

  /**
   * Resolves with the quota that has not enough left, if there is one. A refusal follows from views that were read
   * after the call. Rejects if the views or the log can't be read, and with ViewsCatchingUpError if the views do not
   * advance.
   */
  async reserve(owner: QuotaOwner, amounts: QuotaAmounts): Promise<QuotaReservation | ExceededQuota> {
    return this.check(owner, amounts, 'waits', (account) => this.hold(account, owner, amounts))
  }

  /** The quota that has not enough left; null if there is none, or if the views lack what would show it. */
  async exceeded(owner: QuotaOwner, amounts: QuotaAmounts): Promise<ExceededQuota | null> {
    return this.check(owner, amounts, 'allows', () => null)
  }

  private hold(account: KnownAccount, owner: QuotaOwner, amounts: QuotaAmounts): QuotaReservation {
    const reserved = wantedOf(account, owner, amounts).map((each) => ({ ...each, held: 0 }))
    const change = (each: (typeof reserved)[number], more: number) => {
      each.known.reserved += more
      each.held += more
    }
    for (const each of reserved) change(each, each.amount)
    return {
      fill(part, position) {
        const uses = reserved.map((each) => {
          const { known, quota, held } = each
          const amount = part[quota] ?? 0
          known.appended += amount
          change(each, -Math.min(amount, held))
          return { known, amount }
        })
        account.appended.push({ ...position, uses })
      },
      release() {
        for (const each of reserved) change(each, -each.held)
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

  /**
   * Resolves with the result of `onAllowed`, which is called as soon as something is allowed, before another check can
   * be. `whenUnknown`: what is done if the views lack records that decide.
   */
  private async check<Allowed>(
    owner: QuotaOwner,
    amounts: QuotaAmounts,
    whenUnknown: 'waits' | 'allows',
    onAllowed: (account: KnownAccount) => Allowed,
  ): Promise<Allowed | ExceededQuota> {
    const calledAtMs = performance.now()
    const account = this.accountOf(owner.accountId)
    const exceeding = (more: (known: KnownQuota) => number) =>
      wantedOf(account, owner, amounts).filter(
        ({ known, amount }) => usedOf(known) + amount + more(known) > known.limit,
      )
    const exceedingNow = () => exceeding(() => 0)
    await this.readSince(account, calledAtMs - VALID_MS)
    if (exceeding((known) => this.marginOf(known, account.views)).length === 0) return onAllowed(account)
    await this.readSince(account, calledAtMs)
    const { missing } = account.views
    if (exceeding((known) => this.mostIn(missing, known)).length === 0) return onAllowed(account)
    // What others have deleted is in the views before they know. So what these have alone decides, if it is too much.
    const isTemporary = () => exceedingNow().every(({ known, amount }) => known.used + amount <= known.limit)
    if (missing > 0 && isTemporary()) {
      if (whenUnknown === 'allows') return onAllowed(account)
      await this.waitUntilShown(account.views.ends)
      await this.readSince(account, performance.now())
    }
    // Others' reservations may be released, or be in the views already, so that they are counted twice.
    const untilMs = performance.now() + (whenUnknown === 'waits' ? SETTLE_MS : 0)
    while (exceedingNow().length > 0 && isTemporary() && performance.now() < untilMs) {
      await this.readSince(account, performance.now())
    }
    if (whenUnknown === 'allows' && isTemporary()) return onAllowed(account)
    const all = exceedingNow()
    // The one that has nothing left for the longest time.
    const refusing = all.find(({ quota }) => kindOf(quota).isDaily) ?? all[0]
    if (refusing === undefined) return onAllowed(account)
    const { known, amount: wanted } = refusing
    return { ...known, used: usedOf(known), wanted }
  }

  /** What may be used until the totals are read again, and of what the views lacked. */
  private marginOf(known: KnownQuota, { missing, readAtMs, shownUntilMs }: ViewsState): number {
    const least = known.quota === 'stored-bytes' ? MARGIN.mails * this.sources.maxMessageBytes : MARGIN.count
    const isLagging = readAtMs - shownUntilMs > MAX_LAG_MS
    return Math.max(least, known.limit * MARGIN.share) + (isLagging ? this.mostIn(missing, known) : 0)
  }

  /** The most that these records use: a mail or an inbox each. */
  private mostIn(records: number, { quota }: KnownQuota): number {
    return quota === 'stored-bytes' ? records * this.sources.maxMessageBytes : records
  }

  private accountOf(id: AccountId): KnownAccount {
    const known = this.known.get(id)
    if (known !== undefined) return known
    const unread = { isSuspended: false, views: NOTHING_READ, readAtMs: -Infinity, reading: null }
    const account = { id, quotas: new Map(), appended: [], ...unread }
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
    const { views, inboxes, accounts, plans, now } = this.sources
    const readAtMs = performance.now()
    const found = await views.readComplete('account-events', () => accounts.account(account.id))
    const limits = found === null ? [] : quotasOf(planOf(plans, found), found.quotas)
    const ofMail = limits.filter(isOfMail)
    let state = await this.viewsState.get()
    let amounts: number[]
    for (;;) {
      amounts = await inboxes.usedQuotas(account.id, ofMail, now())
      // The totals have at least what is before the positions, unless the views were emptied in between.
      const after = await this.viewsState.get()
      if (after.begun === state.begun) break
      state = after
    }
    const { positions } = state
    const isMissing = ({ partition, offset }: Position) => offset >= (positions.get(partition) ?? 0)
    for (const { uses } of account.appended.filter((record) => !isMissing(record))) {
      for (const { known, amount } of uses) known.appended -= amount
    }
    // Reservations have the objects, so those of the same name stay.
    const quotas = ofMail.map((limit, index) => {
      const known = account.quotas.get(quotaName(limit)) ?? { appended: 0, reserved: 0 }
      return [quotaName(limit), Object.assign(known, limit, { used: amounts[index] ?? 0 })] as const
    })
    Object.assign(account, {
      quotas: new Map(quotas),
      appended: account.appended.filter(isMissing),
      isSuspended: found !== null && found.suspendedAt !== null,
      views: state,
      readAtMs,
    })
  }

  private async readViewsState(): Promise<ViewsState> {
    const { log, inboxes } = this.sources
    const readAtMs = performance.now()
    const partitions = await readProgress(log, inboxes, 'inbox-events')
    const positions = new Map(partitions.map(({ partition, position }) => [partition, position]))
    const ends = new Map(partitions.map(({ partition, end }) => [partition, end]))
    const missing = partitions.reduce((sum, { end, position }) => sum + Math.max(end - position, 0), 0)
    const begun = partitions.map(({ progress }) => progress?.begunAtMs).join(' ')
    const state = { positions, ends, begun, missing, readAtMs }
    const last = this.reached
    if (missing > 0 && !areReached(last.ends, positions)) return { ...state, shownUntilMs: last.shownUntilMs }
    // The ends are replaced only once the views have reached them, so the time is old while the views stand still.
    this.reached = { ...state, shownUntilMs: missing === 0 ? readAtMs : last.readAtMs }
    return this.reached
  }

  /** Throws ViewsCatchingUpError. */
  private async waitUntilShown(ends: ReadonlyMap<number, number>): Promise<void> {
    const untilMs = performance.now() + MAX_WAIT_MS
    for (let ms = CHECK_AGAIN_MS.first; ; ms = Math.min(ms * 2, CHECK_AGAIN_MS.most)) {
      const { positions } = await this.viewsState.get()
      if (areReached(ends, positions)) return
      if (performance.now() > untilMs) {
        throw new ViewsCatchingUpError('What the account uses of its quotas is not known yet.')
      }
      await pause(ms)
    }
  }
}

/** The quotas that something would use, with the amounts. */
function wantedOf(account: KnownAccount, owner: QuotaOwner, amounts: QuotaAmounts) {
  const scopes = quotaScopesOf(owner)
  return MAIL_QUOTAS.flatMap((quota) =>
    scopes.flatMap((scope) => {
      const known = account.quotas.get(quotaName({ quota, scope }))
      const amount = amounts[quota]
      return known === undefined || amount === undefined ? [] : [{ known, quota, amount }]
    }),
  )
}

function areReached(ends: ReadonlyMap<number, number>, positions: ReadonlyMap<number, number>): boolean {
  return [...ends].every(([partition, end]) => (positions.get(partition) ?? 0) >= end)
}

function usedOf({ used, appended, reserved }: KnownQuota): number {
  return used + appended + reserved
}

export function isExcess(reserved: QuotaReservation | ExceededQuota): reserved is ExceededQuota {
  return 'limit' in reserved
}
