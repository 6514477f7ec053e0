import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { WaitingMail, ParseTask } from './parse-task.js'
import { LRUCache } from 'lru-cache'

/** Mails of a job: handing one over costs as much as parsing a small mail. */
export const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail goes alone. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** Mail that has waited longer for a thread is urgent. */
const URGENT_AFTER_MS = 100

/** What waits, by owner: each gets its turn, however much the others bring. */
export class FairQueue<Item> {
  /** In the order of their turns. */
  private readonly lines = new Map<string, Item[]>()
  private count = 0

  get size(): number {
    return this.count
  }

  /** The first of each owner. */
  heads(): Item[] {
    return [...this.lines.values()].flatMap(([item]) => (item === undefined ? [] : [item]))
  }

  add(owner: string, item: Item): void {
    this.lineOf(owner).push(item)
    this.count += 1
  }

  /** Ahead of what waits for the same owner. */
  addFirst(owner: string, item: Item): void {
    this.lineOf(owner).unshift(item)
    this.count += 1
  }

  /** The next in turn of those that may be taken; null for none. Its owner's next turn is behind all others'. */
  take(mayTake: (item: Item, owner: string) => boolean): Item | null {
    for (const [owner, line] of this.lines) {
      const [item] = line
      if (item === undefined || !mayTake(item, owner)) continue
      line.shift()
      this.lines.delete(owner)
      if (line.length > 0) this.lines.set(owner, line)
      this.count -= 1
      return item
    }
    return null
  }

  /** Takes all of those out, whoever's turn it is. */
  remove(isWanted: (item: Item) => boolean): Item[] {
    const removed: Item[] = []
    for (const [owner, line] of this.lines) {
      const kept = line.filter((item) => !isWanted(item))
      if (kept.length === line.length) continue
      removed.push(...line.filter(isWanted))
      if (kept.length === 0) this.lines.delete(owner)
      else this.lines.set(owner, kept)
    }
    this.count -= removed.length
    return removed
  }

  private lineOf(owner: string): Item[] {
    const line = this.lines.get(owner) ?? []
    this.lines.set(owner, line)
    return line
  }
}

/** Whether somebody's next mail has waited for long, or was given up after others had waited for it. */
export function hasUrgent(queue: FairQueue<WaitingMail>): boolean {
  const longAgoMs = performance.now() - URGENT_AFTER_MS
  return queue.heads().some(({ defeat, sinceMs }) => defeat !== null || sinceMs < longAgoMs)
}

/**
 * Takes the mails of one job: small ones together, of all accounts in turn, or one large one. Of the busy account, which
 * is to leave a thread to others, only mail that takes no time is taken.
 */
export function takeJob(
  queue: FairQueue<WaitingMail>,
  allowance: Pick<ParseAllowance, 'isSpent'>,
  busy: AccountId | null,
): WaitingMail[] {
  const mails: WaitingMail[] = []
  let bytes = 0
  // Bytes that take time: of a mail whose budget is used up only the header is read.
  const weightOf = ({ task }: WaitingMail) =>
    allowance.isSpent(task) ? Math.min(task.size, SHARED_UP_TO_BYTES) : task.size
  const mayTake = (mail: WaitingMail) => {
    const { task, isSettled, defeat } = mail
    if (task.accountId === busy && defeat === null && !allowance.isSpent(task)) return false
    if (isSettled || mails.length === 0) return true
    const weight = weightOf(mail)
    return weight <= SHARED_UP_TO_BYTES && bytes + weight <= JOB_BYTES
  }
  while (mails.length < JOB_TASKS) {
    const mail = queue.take(mayTake)
    if (mail === null) break
    // Another thread has answered for it meanwhile.
    if (mail.isSettled) continue
    const weight = weightOf(mail)
    mails.push(mail)
    bytes += weight
    if (weight > SHARED_UP_TO_BYTES) break
  }
  return mails
}

export interface ParseBudgetOptions {
  /** CPU milliseconds of a minute's mail of one inbox beyond what is ordinary. */
  inboxBudgetMs: number
  /** The same for all of an account's. */
  accountBudgetMs: number
}

/** A mail that takes no longer costs nothing: many times what mail takes that is no attack. */
const ORDINARY_MS = 20
const ORDINARY_MS_PER_MIB = 20
/** Every mail up to this size may take so much more: less than ending a thread costs. */
const SMALL_BYTES = 64 * 1024
const SMALL_MS = 100
const WINDOW_MS = 60_000
/** Used budgets that are remembered. */
const MAX_WINDOWS = 20_000

type Reader = Pick<ParseTask, 'accountId' | 'inboxId' | 'receivedAt' | 'size'>

/** CPU time that a mail of so many bytes may take at no cost. */
export function ordinaryMs(bytes: number): number {
  return ORDINARY_MS + (bytes / (1024 * 1024)) * ORDINARY_MS_PER_MIB
}

/**
 * How much CPU time beyond the ordinary the mail of an inbox and of an account may still take. A minute's budget is for
 * the mail received in that minute, whenever it is read (docs/decisions/0017-fair-parsing.md).
 */
export class ParseBudget {
  private readonly spent = new LRUCache<string, number>({ max: MAX_WINDOWS })

  constructor(private readonly budgets: ParseBudgetOptions) {}

  /**
   * Whether a mail is not to be read as a whole: its inbox's budget is used up; or its account's is, and the mail is
   * larger than a sign-up or a code.
   */
  isSpent(mail: Reader): boolean {
    const { isInboxSpent, isAccountSpent } = this.stateOf(mail)
    return isInboxSpent || (isAccountSpent && mail.size > SMALL_BYTES)
  }

  /** Whether a mail that has taken so much beyond the ordinary, all of it spent, is to take no more. */
  isOver(mail: Reader, excessMs: number): boolean {
    if (mail.size <= SMALL_BYTES && excessMs < SMALL_MS) return false
    const { isInboxSpent, isAccountSpent } = this.stateOf(mail)
    return isInboxSpent || isAccountSpent
  }

  /** For a mail that took all it could: no other is to cost others a thread again. */
  spendAll(mail: Reader): void {
    this.spend(mail, Math.max(this.budgets.inboxBudgetMs, this.budgets.accountBudgetMs))
  }

  spend(mail: Reader, ms: number): void {
    if (ms <= 0) return
    for (const window of windowsOf(mail)) this.spent.set(window, this.spentIn(window) + ms)
  }

  private stateOf(mail: Reader): { isInboxSpent: boolean; isAccountSpent: boolean } {
    const [inbox, account] = windowsOf(mail)
    return {
      isInboxSpent: this.spentIn(inbox) >= this.budgets.inboxBudgetMs,
      isAccountSpent: this.spentIn(account) >= this.budgets.accountBudgetMs,
    }
  }

  private spentIn(window: string): number {
    return this.spent.get(window) ?? 0
  }
}

function windowsOf({ inboxId, accountId, receivedAt }: Reader): [inbox: string, account: string] {
  const window = Math.floor(receivedAt.getTime() / WINDOW_MS)
  return [`${window} ${inboxId}`, `${window} ${accountId}`]
}

interface Seen {
  accountId: AccountId
  atMs: number
}

const RECENT_MS = 60_000

/** Whose mail was read in the last minute: what the mail of an account that is alone costs delays nobody else's. */
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

export interface ParseAllowanceOptions extends ParseBudgetOptions {
  /** Wall-clock time of one mail at most, whatever else it may take. */
  timeoutMs: number
  /** The same, in addition to twice the ordinary, for new mail that takes more than the ordinary. */
  patienceMs: number
}

/** Older mail delays nobody: the views are being rebuilt. */
const FRESH_FOR_MS = 60_000

/** What reading a mail may take: the budgets apply only if others' mail may wait behind it. */
export class ParseAllowance extends ParseBudget {
  private readonly accounts = new RecentAccounts()

  constructor(private readonly options: ParseAllowanceOptions) {
    super(options)
  }

  /** To be called when mail of an account has come. */
  see(accountId: AccountId): void {
    this.accounts.see(accountId, performance.now())
  }

  override isSpent(task: Reader): boolean {
    return this.mayDelayOthers(task) && super.isSpent(task)
  }

  override isOver(task: Reader, excessMs: number): boolean {
    return this.mayDelayOthers(task) && super.isOver(task, excessMs)
  }

  /** Wall-clock time after which any mail is given up. */
  get timeoutMs(): number {
    return this.options.timeoutMs
  }

  /** Wall-clock time after which a mail is given up that has taken more CPU time than the ordinary. */
  patienceMs(task: Reader): number {
    const { timeoutMs, patienceMs } = this.options
    if (!this.mayDelayOthers(task)) return timeoutMs
    // On a busy machine the ordinary takes longer too.
    return Math.min(patienceMs + 2 * ordinaryMs(task.size), timeoutMs)
  }

  private mayDelayOthers({ accountId, receivedAt }: Reader): boolean {
    const isFresh = Date.now() - receivedAt.getTime() < FRESH_FOR_MS
    return isFresh && !this.accounts.isAlone(accountId, performance.now())
  }
}
