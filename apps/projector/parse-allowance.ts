import { LRUCache } from 'lru-cache'
import type { AccountId } from '#libs/domain/ids/typeid.js'
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

/** A mail that takes no longer costs nobody anything: many times what mail takes that is no attack. */
const ORDINARY_MS = 20
const ORDINARY_MS_PER_MIB = 20
/** Of mail up to this size every one may take so much more: less than ending a thread costs. */
const SMALL_BYTES = 64 * 1024
const SMALL_MS = 100
const WINDOW_MS = 60_000
/** Spent budgets remembered. */
const MAX_WINDOWS = 20_000

export interface ParseBudgetOptions {
  /** CPU milliseconds of a minute's mail of one inbox beyond what is ordinary. */
  inboxMs: number
  /** The same for all of an account's. */
  accountMs: number
}

type Reader = Pick<ParseTask, 'accountId' | 'inboxId' | 'receivedAt' | 'size'>

/**
 * How much CPU time beyond the ordinary the mail of an inbox and of an account may still take. A minute's budget is for
 * the mail received in that minute, whenever it is read (docs/decisions/0017-fair-parsing.md).
 */
export class ParseBudget {
  private readonly spent = new LRUCache<string, number>({ max: MAX_WINDOWS })

  constructor(private readonly options: ParseBudgetOptions) {}

  /**
   * Whether a mail is not to be read as a whole at all: the mail of its inbox has used up what is its own; or that of
   * the account has, and this one is larger than what tells of a sign-up or a code.
   */
  isSpent(mail: Reader): boolean {
    const [inbox, account] = windowsOf(mail)
    const { inboxMs, accountMs } = this.options
    if (this.spentIn(inbox) >= inboxMs) return true
    return this.spentIn(account) >= accountMs && mail.size > SMALL_BYTES
  }

  /** Whether a mail that has taken so much beyond the ordinary, all of it spent, is to take no more. */
  isOver(mail: Reader, excessMs: number): boolean {
    if (mail.size <= SMALL_BYTES && excessMs < SMALL_MS) return false
    const [inbox, account] = windowsOf(mail)
    const { inboxMs, accountMs } = this.options
    return this.spentIn(inbox) >= inboxMs || this.spentIn(account) >= accountMs
  }

  /** For a mail that took all it could: no other is to cost others a thread again. */
  spendAll(mail: Reader): void {
    this.spend(mail, Math.max(this.options.inboxMs, this.options.accountMs))
  }

  spend(mail: Reader, ms: number): void {
    if (ms <= 0) return
    for (const window of windowsOf(mail)) this.spent.set(window, this.spentIn(window) + ms)
  }

  private spentIn(window: string): number {
    return this.spent.get(window) ?? 0
  }
}

/** CPU time that a mail of so many bytes may take at no cost. */
export function ordinaryMs(bytes: number): number {
  return ORDINARY_MS + (bytes / (1024 * 1024)) * ORDINARY_MS_PER_MIB
}

function windowsOf({ inboxId, accountId, receivedAt }: Reader): [inbox: string, account: string] {
  const window = Math.floor(receivedAt.getTime() / WINDOW_MS)
  return [`${window} ${inboxId}`, `${window} ${accountId}`]
}
