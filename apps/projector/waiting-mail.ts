import type { Defeat, ParseResult, ParseTask } from './parse-task.js'

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
