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
