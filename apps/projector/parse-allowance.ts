import { LRUCache } from 'lru-cache'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { RecentOwners } from '#libs/runtime/fairness/recent-owners.js'
import type { ParseTask } from './parse-task.js'

export interface ParseAllowanceOptions {
  /** CPU milliseconds above the baseline for the mail that one inbox receives in a minute. */
  inboxBudgetMs: number
  /** CPU milliseconds above the baseline for the mail that one account receives in a minute. */
  accountBudgetMs: number
  /** Wall-clock timeout of every mail. */
  timeoutMs: number
  /** Wall-clock timeout, in addition to twice the baseline, of new mail that takes more CPU time than the baseline. */
  slowTimeoutMs: number
}

/** CPU time that is not charged: many times what normal mail takes. */
const BASELINE_MS = 20
const BASELINE_MS_PER_MIB = 20
/** A mail up to this size may take SMALL_MS more, which is less than terminating a thread costs. */
const SMALL_BYTES = 64 * 1024
const SMALL_MS = 100
const WINDOW_MS = 60_000
/** How many budgets are remembered. */
const MAX_WINDOWS = 20_000
/** Older mail is parsed because the views are being rebuilt, and delays no new mail. */
const FRESH_FOR_MS = 60_000

type BudgetedMail = Pick<ParseTask, 'accountId' | 'inboxId' | 'receivedAt' | 'size'>

/** The CPU time that is not charged for a mail of that size. */
export function baselineMs(bytes: number): number {
  return BASELINE_MS + (bytes / (1024 * 1024)) * BASELINE_MS_PER_MIB
}

/**
 * The time that parsing a mail may take: wall-clock time, and CPU time above the baseline from the budgets of its inbox
 * and its account. There is a budget for the mail received in each minute, whenever it is parsed. Budgets apply only if
 * the mail may delay other accounts (docs/decisions/0017-fair-parsing.md).
 */
export class ParseAllowance {
  private readonly spent = new LRUCache<string, number>({ max: MAX_WINDOWS })
  private readonly accounts = new RecentOwners()

  constructor(private readonly options: ParseAllowanceOptions) {}
  recordMail(accountId: AccountId): void {
    this.accounts.record(accountId, performance.now())
  }

  /** Whether other accounts may wait for a mail: it is new, and another account has had mail within a minute. */
  mayDelayOthers({ accountId, receivedAt }: BudgetedMail): boolean {
    const isFresh = Date.now() - receivedAt.getTime() < FRESH_FOR_MS
    return isFresh && !this.accounts.isAlone(accountId, performance.now())
  }

  /**
   * Whether only the header of a mail is parsed: its inbox's budget is used up, or its account's budget is used up and
   * the mail is larger than a typical sign-up mail.
   */
  isSpent(mail: BudgetedMail): boolean {
    const { isInboxSpent, isAccountSpent } = this.stateOf(mail, 0)
    return isInboxSpent || (isAccountSpent && mail.size > SMALL_BYTES)
  }

  /** Whether parsing must stop for a mail that has taken `excessMs` above the baseline. */
  isOver(mail: BudgetedMail, excessMs: number): boolean {
    if (mail.size <= SMALL_BYTES && excessMs < SMALL_MS) return false
    const { isInboxSpent, isAccountSpent } = this.stateOf(mail, excessMs)
    return isInboxSpent || isAccountSpent
  }

  /** Uses up the budgets of a mail whose thread was terminated, so that no other mail of its inbox costs a thread. */
  spendAll(mail: BudgetedMail): void {
    this.spend(mail, Math.max(this.options.inboxBudgetMs, this.options.accountBudgetMs))
  }

  spend(mail: BudgetedMail, ms: number): void {
    if (ms <= 0) return
    for (const window of windowsOf(mail)) this.spent.set(window, this.spentIn(window) + ms)
  }

  /** Wall-clock timeout of every mail. */
  get timeoutMs(): number {
    return this.options.timeoutMs
  }

  /** Wall-clock timeout of a mail that has taken more CPU time than the baseline. */
  slowTimeoutMs(mail: BudgetedMail): number {
    const { timeoutMs, slowTimeoutMs } = this.options
    if (!this.mayDelayOthers(mail)) return timeoutMs
    // On a busy machine the baseline takes longer too.
    return Math.min(slowTimeoutMs + 2 * baselineMs(mail.size), timeoutMs)
  }

  private stateOf(mail: BudgetedMail, moreMs: number): { isInboxSpent: boolean; isAccountSpent: boolean } {
    if (!this.mayDelayOthers(mail)) return { isInboxSpent: false, isAccountSpent: false }
    const [inbox, account] = windowsOf(mail)
    return {
      isInboxSpent: this.spentIn(inbox) + moreMs >= this.options.inboxBudgetMs,
      isAccountSpent: this.spentIn(account) + moreMs >= this.options.accountBudgetMs,
    }
  }

  private spentIn(window: string): number {
    return this.spent.get(window) ?? 0
  }
}

function windowsOf({ inboxId, accountId, receivedAt }: BudgetedMail): [inbox: string, account: string] {
  const window = Math.floor(receivedAt.getTime() / WINDOW_MS)
  return [`${window} ${inboxId}`, `${window} ${accountId}`]
}
