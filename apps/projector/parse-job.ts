import { baselineMs, type ParseAllowance } from './parse-budget.js'
import type { FallbackReason, PendingMail } from './parse-task.js'
import type { ParseThread } from './parse-thread.js'

export interface ParseJobOptions {
  allowance: ParseAllowance
  /** Called with the mails after a slow one, which its thread will not parse. */
  onReleased: (mails: readonly PendingMail[]) => void
  /** Called after each check of the thread, every 10 ms. */
  onChecked: () => void
}

const CHECK_EVERY_MS = 10
/**
 * A mail that takes more CPU time is slow: other threads parse the other mails of its job. On a busy machine a thread
 * may wait for the CPU, so wall-clock time marks a mail as slow only after STALLED_AFTER_MS.
 */
const SLOW_AFTER_MS = 25
const STALLED_AFTER_MS = 250
/** CPU time above the baseline for parsing only the header of a mail. */
const HEADER_MS = 200

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const

/**
 * The mails that a thread parses. While the job is watched, a slow mail's CPU time is charged to its budgets, and its
 * thread is terminated if the time is used up. The thread may move on to the next mail at any moment.
 */
export class ParseJob {
  /** Whether the current mail is slow, and the others were released to other threads. */
  isSlow = false
  /** The mail for which the thread was terminated, and why; null before that. */
  terminated: { mail: PendingMail; reason: FallbackReason } | null = null
  private chargedMs = 0
  private isCharging = false
  /** The index of the current mail at the last check, and when that mail was first seen. */
  private index = -1
  private sinceMs = 0
  private watching: NodeJS.Timeout | null = null
  /** The mails that were not released to other threads. */
  private readonly owned: Set<PendingMail>

  constructor(
    private readonly thread: Pick<ParseThread, 'index' | 'cpuMs' | 'stop' | 'end'>,
    private readonly mails: readonly PendingMail[],
    private readonly options: ParseJobOptions,
  ) {
    this.owned = new Set(mails)
  }

  /** The mail that the thread is parsing; null after the last one. */
  get current(): PendingMail | null {
    return this.mails[this.thread.index] ?? null
  }

  watch(): void {
    this.watching = setInterval(() => this.check(), CHECK_EVERY_MS)
  }

  stopWatching(): void {
    if (this.watching !== null) clearInterval(this.watching)
  }

  /** Returns the mails without a result except the current one, so that other threads parse them. */
  releaseOthers(): PendingMail[] {
    const { current } = this
    const others = this.unanswered().filter((mail) => mail !== current)
    for (const mail of others) this.owned.delete(mail)
    return others
  }

  /** The mails without a result that were not released. */
  unanswered(): PendingMail[] {
    return [...this.owned].filter(({ isSettled }) => !isSettled)
  }

  /** The CPU time already charged for a mail. */
  chargedFor(mail: PendingMail): number {
    // Only a slow mail is charged while it is parsed, and its thread parses no mail after it.
    return mail === this.current ? this.chargedMs : 0
  }

  private check(): void {
    const { index } = this.thread
    const nowMs = performance.now()
    if (this.index !== index) {
      this.index = index
      this.sinceMs = nowMs
      this.chargedMs = 0
    }
    const mail = this.mails[index]
    const ms = nowMs - this.sinceMs
    if (mail !== undefined && ms >= SLOW_AFTER_MS && this.terminated === null) {
      if (!this.isSlow && ms > STALLED_AFTER_MS) this.markSlow()
      if (ms > this.maxMs(mail)) this.terminate(mail)
      else if (!this.isCharging) void this.charge(mail, index)
    }
    this.options.onChecked()
  }

  /** Wall-clock time for a mail. A mail with little CPU time is slow only because the machine is busy. */
  private maxMs({ task }: PendingMail): number {
    const { allowance } = this.options
    return this.chargedMs > 0 ? allowance.slowTimeoutMs(task) : allowance.timeoutMs
  }

  private markSlow(): void {
    this.isSlow = true
    this.thread.stop()
    this.options.onReleased(this.releaseOthers())
  }

  /** Charges the current mail's CPU time to its budgets, and terminates the thread if they are used up. */
  private async charge(mail: PendingMail, index: number): Promise<void> {
    this.isCharging = true
    const cpuMs = await this.thread.cpuMs()
    this.isCharging = false
    if (cpuMs === null || this.thread.index !== index || mail.isSettled) return
    if (cpuMs < SLOW_AFTER_MS && !this.isSlow) return
    if (!this.isSlow) this.markSlow()
    const { allowance } = this.options
    const excessMs = cpuMs - baselineMs(mail.task.size)
    if (mail.fallback !== null) {
      if (mail.fallback.shows === 'header' && excessMs > HEADER_MS) this.terminate(mail)
    } else if (excessMs > this.chargedMs) {
      allowance.spend(mail.task, excessMs - this.chargedMs)
      this.chargedMs = excessMs
      if (allowance.isOver(mail.task, excessMs)) this.terminate(mail)
    }
  }

  private terminate(mail: PendingMail): void {
    if (this.terminated !== null || mail.fallback?.shows === 'nothing') return
    this.terminated = { mail, reason: TIMEOUT }
    this.options.allowance.spendAll(mail.task)
    void this.thread.end()
  }
}
