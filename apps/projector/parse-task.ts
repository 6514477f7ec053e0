import { LRUCache } from 'lru-cache'
import type { WarningCode } from '#libs/mail/message.js'
import type { AccountId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'

/** One mail for a parsing thread: sealed, with the key that opens it. */
export interface ParseTask {
  /** Whose budget pays for reading it. */
  accountId: AccountId
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  key: Uint8Array
  sealed: Uint8Array
  /** Bytes of the source, which the sealed ones say little of. */
  size: number
}

export const DEFEATS = [
  'parse-failed',
  'parse-timeout',
  'parse-out-of-memory',
  'parse-over-budget',
] as const satisfies readonly WarningCode[]

/** Why a mail is not read as a whole, and what is shown of it instead. */
export interface Defeat {
  code: (typeof DEFEATS)[number]
  detail: string
  shows: 'header' | 'nothing'
}

/** What a thread is to do with a mail. */
export interface ParseOrder {
  task: ParseTask
  /** Null if it is read as a whole. */
  defeat: Defeat | null
}

/** The parsed mail, sealed with the same key. */
export interface ParseResult {
  messageId: MessageId
  body: Uint8Array
  /** What the thread has spent on it. */
  cpuMs: number
  /** Whether the parser gave up on it. */
  hasFailed: boolean
}

export type DefeatReason = Pick<Defeat, 'code' | 'detail'>

/** A mail that somebody waits for. */
export class WaitingMail {
  /** By the clock of `performance`. */
  readonly sinceMs = performance.now()
  /** Null while it is to be read as a whole. */
  defeat: Defeat | null = null
  isSettled = false
  private readonly answer = Promise.withResolvers<ParseResult>()

  constructor(readonly task: ParseTask) {}

  /** Resolves with the first answer, rejects with the first failure. */
  get result(): Promise<ParseResult> {
    return this.answer.promise
  }

  settle(result: ParseResult): void {
    this.isSettled = true
    this.answer.resolve(result)
  }

  fail(reason: unknown): void {
    this.isSettled = true
    this.answer.reject(reason)
  }

  /** Shows less of it than was tried. */
  showLess(reason: DefeatReason): void {
    this.defeat = this.defeat === null ? { ...reason, shows: 'header' } : { ...this.defeat, shows: 'nothing' }
  }
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
