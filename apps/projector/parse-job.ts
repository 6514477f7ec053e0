import { baselineMs, type ParseAllowance } from './parse-allowance.js'
import type { PendingMail } from './parse-task.js'
import type { ParseThread } from './parse-thread.js'

const CHECK_EVERY_MS = 10
/** A mail that takes less wall-clock time is not measured. */
const MEASURED_FROM_MS = 25
/** CPU time above the baseline for parsing only the header of a mail. */
const HEADER_MS = 200

/**
 * The mails that a thread parses, in order. While the job is watched, its thread is terminated if a mail takes too long.
 * The thread may move on to the next mail at any moment.
 */
export class ParseJob {
  /** The mail for which the thread was terminated; null before that. */
  overdue: PendingMail | null = null
  /** The current mail at the last check, when it was first seen, and its CPU time above the baseline so far. */
  private watched: { mail: PendingMail; sinceMs: number; excessMs: number } | null = null
  private isMeasuring = false
  private watching: NodeJS.Timeout | null = null

  constructor(
    private readonly thread: Pick<ParseThread, 'index' | 'cpuMs' | 'end'>,
    private readonly mails: readonly PendingMail[],
    private readonly allowance: ParseAllowance,
  ) {}

  /** The mail that the thread is parsing; null after the last one. */
  get current(): PendingMail | null {
    return this.mails[this.thread.index] ?? null
  }
  get unanswered(): PendingMail[] {
    return this.mails.filter(({ isSettled }) => !isSettled)
  }

  watch(): void {
    this.watching = setInterval(() => this.check(), CHECK_EVERY_MS)
  }

  stopWatching(): void {
    if (this.watching !== null) clearInterval(this.watching)
  }

  private check(): void {
    const mail = this.current
    if (mail === null || mail.fallback?.shows === 'nothing' || this.overdue !== null) return
    const nowMs = performance.now()
    if (this.watched?.mail !== mail) this.watched = { mail, sinceMs: nowMs, excessMs: -Infinity }
    const { sinceMs, excessMs } = this.watched
    if (this.isOver(mail, nowMs - sinceMs, excessMs)) {
      this.overdue = mail
      this.allowance.spendAll(mail.task)
      void this.thread.end()
    } else if (nowMs - sinceMs >= MEASURED_FROM_MS && !this.isMeasuring) {
      void this.measure(mail)
    }
  }

  /** A mail with little CPU time takes long only because the machine is busy. */
  private isOver({ task, fallback }: PendingMail, wallMs: number, excessMs: number): boolean {
    const { allowance } = this
    if (fallback !== null) return wallMs > allowance.timeoutMs || excessMs > HEADER_MS
    const timeoutMs = excessMs > 0 ? allowance.slowTimeoutMs(task) : allowance.timeoutMs
    return wallMs > timeoutMs || (excessMs > 0 && allowance.isOver(task, excessMs))
  }

  private async measure(mail: PendingMail): Promise<void> {
    this.isMeasuring = true
    const cpuMs = await this.thread.cpuMs()
    this.isMeasuring = false
    if (cpuMs === null || this.current !== mail || this.watched?.mail !== mail) return
    this.watched.excessMs = cpuMs - baselineMs(mail.task.size)
  }
}
