import type { AccountId } from '#libs/domain/ids/typeid.js'
import { ordinaryMs, ParseBudget } from './parse-budget.js'
import type { ParseTask } from './parse-task.js'

export interface ParseAllowanceOptions {
  /** Wall-clock time of one mail at most, whatever else it may take. */
  timeoutMs: number
  /** The same of one that has come just now and takes more than the ordinary, beside twice what is ordinary. */
  patienceMs: number
  /** CPU milliseconds of a minute's mail of one inbox beyond what is ordinary. */
  inboxBudgetMs: number
  /** The same for all of an account's. */
  accountBudgetMs: number
}

/** Mail that is older waits in nobody's way: views are being rebuilt. */
const FRESH_FOR_MS = 60_000

/** What reading a mail may take: less where others' mail may wait behind it. */
export class ParseAllowance {
  private readonly accounts = new RecentAccounts()
  private readonly budget: ParseBudget

  constructor(private readonly options: ParseAllowanceOptions) {
    this.budget = new ParseBudget({ inboxMs: options.inboxBudgetMs, accountMs: options.accountBudgetMs })
  }

  /** Mail of that account has come to be read. */
  see(accountId: AccountId): void {
    this.accounts.see(accountId, performance.now())
  }

  /** Whether a mail is not to be read as a whole at all. */
  isSpent(task: ParseTask): boolean {
    return this.isHurried(task) && this.budget.isSpent(task)
  }

  /** Whether a mail that has taken so much CPU time beyond the ordinary, all of it charged, is to take no more. */
  isOver(task: ParseTask, excessMs: number): boolean {
    return this.isHurried(task) && this.budget.isOver(task, excessMs)
  }

  /** Wall-clock time after which any mail is given up. */
  get timeoutMs(): number {
    return this.options.timeoutMs
  }

  /** The same of a mail that has taken more CPU time than the ordinary. */
  patienceMs(task: ParseTask): number {
    const { timeoutMs, patienceMs } = this.options
    if (!this.isHurried(task)) return timeoutMs
    // On a machine that is busy the ordinary takes longer too.
    return Math.min(patienceMs + 2 * ordinaryMs(task.size), timeoutMs)
  }

  /** For CPU time beyond the ordinary. */
  charge(task: ParseTask, excessMs: number): void {
    this.budget.spend(task, excessMs)
  }

  /** For a mail that took all it could: no other is to cost others a thread again. */
  chargeAll(task: ParseTask): void {
    this.budget.spendAll(task)
  }

  /** In views that are being rebuilt nobody's mail waits behind another's. */
  private isHurried({ accountId, receivedAt }: ParseTask): boolean {
    const isFresh = Date.now() - receivedAt.getTime() < FRESH_FOR_MS
    return isFresh && !this.accounts.isAlone(accountId, performance.now())
  }
}

interface Seen {
  accountId: AccountId
  atMs: number
}

const RECENT_MS = 60_000

/** Whose mail was read of late: where an account is alone, what its mail costs delays nobody else's. */
export class RecentAccounts {
  private latest: Seen | null = null
  /** The latest of another account than that. */
  private other: Seen | null = null

  see(accountId: AccountId, nowMs: number): void {
    if (this.latest?.accountId !== accountId) this.other = this.latest
    this.latest = { accountId, atMs: nowMs }
  }

  /** Whether no other account had mail within the last minute. */
  isAlone(accountId: AccountId, nowMs: number): boolean {
    const rival = this.latest?.accountId === accountId ? this.other : this.latest
    return rival === null || nowMs - rival.atMs > RECENT_MS
  }
}
