import type { AccountId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { WarningCode } from '#libs/mail/message.js'

/*
 * A mail to parse: its task, its result, and what is shown if it can't be parsed completely.
 */

/** One mail for a parsing thread: sealed, with the key that opens it. */
export interface ParseTask {
  /** The account whose budget the CPU time counts towards. */
  accountId: AccountId
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  key: Uint8Array
  sealed: Uint8Array
  /** Bytes of the source. The sealed mail is compressed. */
  size: number
}

export const FALLBACK_CODES = [
  'parse-failed',
  'parse-timeout',
  'parse-out-of-memory',
  'parse-over-budget',
] as const satisfies readonly WarningCode[]

/** Why a mail is not parsed completely, and what is shown instead. */
export interface ParseFallback {
  code: (typeof FALLBACK_CODES)[number]
  detail: string
  shows: 'header' | 'nothing'
}

export interface ParseRequest {
  task: ParseTask
  /** Null to parse it completely. */
  fallback: ParseFallback | null
}

/** A parsed mail, sealed with the same key. */
export interface ParseResult {
  messageId: MessageId
  body: Uint8Array
  cpuMs: number
  hasFailed: boolean
}

export type FallbackReason = Pick<ParseFallback, 'code' | 'detail'>

/** A mail that waits for its result. */
export class PendingMail {
  /** Null while it is to be parsed completely. */
  fallback: ParseFallback | null = null
  isSettled = false
  private readonly settled = Promise.withResolvers<ParseResult>()

  constructor(readonly task: ParseTask) {}

  /** Settles with the first call of `settle` or `fail`. */
  get result(): Promise<ParseResult> {
    return this.settled.promise
  }

  settle(result: ParseResult): void {
    this.isSettled = true
    this.settled.resolve(result)
  }

  fail(reason: unknown): void {
    this.isSettled = true
    this.settled.reject(reason)
  }

  /** Shows only the header, or nothing if parsing the header failed too. */
  fallBack(reason: FallbackReason): void {
    this.fallback =
      this.fallback === null ? { ...reason, shows: 'header' } : { ...this.fallback, shows: 'nothing' }
  }
}
