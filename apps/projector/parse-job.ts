import { type ParseAllowance, ordinaryMs } from './parse-queue.js'
import type { DefeatReason, WaitingMail } from './parse-task.js'
import type { ParseThread } from './parse-thread.js'

export interface ParseJobOptions {
  allowance: ParseAllowance
  /** Called with the mails behind a slow one, which its thread leaves. */
  onLeft: (mails: readonly WaitingMail[]) => void
  /** Called after each look at the thread, every 10 ms. */
  onLooked: () => void
}

const LOOK_EVERY_MS = 10
/**
 * A mail that takes a thread longer is slow: those beside it are read elsewhere, and another thread takes its place.
 * CPU time, since on a busy machine a thread waits for its turn; but not for ever.
 */
const SLOW_AFTER_MS = 25
const STALLED_AFTER_MS = 250
/** CPU time beyond the ordinary for the header of a mail that was given up. */
const HEADER_MS = 200

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const

/**
 * The mails that a thread was given. While it is watched, a slow mail is charged with what it takes, and its thread is
 * ended if that is too much. The thread may go on to the next mail at any moment.
 */
export class ParseJob {
  /** Whether one mail holds up those beside it, which another thread has been asked for then. */
  isSlow = false
  /** Which mail the thread was ended for, and why; null while it may go on. */
  cut: { mail: WaitingMail; reason: DefeatReason } | null = null
  private chargedMs = 0
  private isWeighing = false
  /** Where the thread was at the last look, and since when. */
  private index = -1
  private sinceMs = 0
  private watching: NodeJS.Timeout | null = null
  /** The mails that no other thread has been asked for. */
  private readonly own: Set<WaitingMail>

  constructor(
    private readonly thread: Pick<ParseThread, 'index' | 'cpuMs' | 'stop' | 'end'>,
    private readonly mails: readonly WaitingMail[],
    private readonly options: ParseJobOptions,
  ) {
    this.own = new Set(mails)
  }

  /** The mail under way; null past the last. */
  get current(): WaitingMail | null {
    return this.mails[this.thread.index] ?? null
  }

  watch(): void {
    this.watching = setInterval(() => this.look(), LOOK_EVERY_MS)
  }

  stopWatching(): void {
    if (this.watching !== null) clearInterval(this.watching)
  }

  /** Gives away the mails without an answer, except the one under way: another thread is to be asked for them. */
  handOn(): WaitingMail[] {
    const { current } = this
    const others = this.unanswered().filter((mail) => mail !== current)
    for (const mail of others) this.own.delete(mail)
    return others
  }

  /** The mails without an answer that no other thread has been asked for. */
  unanswered(): WaitingMail[] {
    return [...this.own].filter(({ isSettled }) => !isSettled)
  }

  /** The CPU time that a mail has been charged with. */
  chargedFor(mail: WaitingMail): number {
    // A thread goes on to no other mail behind a slow one, which has been charged with most of it.
    return mail === this.current ? this.chargedMs : 0
  }

  private look(): void {
    const { index } = this.thread
    const nowMs = performance.now()
    if (this.index !== index) {
      this.index = index
      this.sinceMs = nowMs
      this.chargedMs = 0
    }
    const mail = this.mails[index]
    const ms = nowMs - this.sinceMs
    if (mail !== undefined && ms >= SLOW_AFTER_MS && this.cut === null) {
      if (!this.isSlow && ms > STALLED_AFTER_MS) this.markSlow()
      if (ms > this.maxMs(mail)) this.giveUp(mail)
      else if (!this.isWeighing) void this.weigh(mail, index)
    }
    this.options.onLooked()
  }

  /** A mail that has taken no more than the ordinary waits for the machine, which is not its fault. */
  private maxMs({ task }: WaitingMail): number {
    const { allowance } = this.options
    return this.chargedMs > 0 ? allowance.patienceMs(task) : allowance.timeoutMs
  }

  private markSlow(): void {
    this.isSlow = true
    this.thread.stop()
    this.options.onLeft(this.handOn())
  }

  /** Charges the mail under way with what it takes, and gives it up if its budget is used up. */
  private async weigh(mail: WaitingMail, index: number): Promise<void> {
    this.isWeighing = true
    const cpuMs = await this.thread.cpuMs()
    this.isWeighing = false
    if (cpuMs === null || this.thread.index !== index || mail.isSettled) return
    if (cpuMs < SLOW_AFTER_MS && !this.isSlow) return
    if (!this.isSlow) this.markSlow()
    const { allowance } = this.options
    const excessMs = cpuMs - ordinaryMs(mail.task.size)
    if (mail.defeat !== null) {
      if (mail.defeat.shows === 'header' && excessMs > HEADER_MS) this.giveUp(mail)
    } else if (excessMs > this.chargedMs) {
      allowance.spend(mail.task, excessMs - this.chargedMs)
      this.chargedMs = excessMs
      if (allowance.isOver(mail.task, excessMs)) this.giveUp(mail)
    }
  }

  private giveUp(mail: WaitingMail): void {
    if (this.cut !== null || mail.defeat?.shows === 'nothing') return
    this.cut = { mail, reason: TIMEOUT }
    this.options.allowance.spendAll(mail.task)
    void this.thread.end()
  }
}
