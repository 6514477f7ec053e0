import { LRUCache } from 'lru-cache'
import type { ParseTask } from './parse-task.js'

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
