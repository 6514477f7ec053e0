import { type ParseAllowance, ordinaryMs, type DefeatReason, type WaitingMail } from './parse-task.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ParseThread } from './parse-thread.js'

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
