import type { AccountId } from '#libs/domain/ids/typeid.js'
import { baselineMs, type FallbackReason, type ParseAllowance, type PendingMail } from './parse-task.js'
import type { ParseThread } from './parse-thread.js'

/*
 * The mails that one thread parses at a time, and the queue from which they are taken.
 */

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
    return this.chargedMs > 0 ? allowance.patienceMs(task) : allowance.timeoutMs
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

/** Mails in a job: passing one job to a thread costs as much as parsing a small mail. */
export const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail is alone in its job. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** A mail that has waited longer for a thread is urgent. */
const URGENT_AFTER_MS = 100

/**
 * Takes the mails of one job from the queue: small mails of all accounts in turn, or one large mail. `busy` is an
 * account that must leave a thread to others: of its mails only those are taken that need little CPU time.
 */
export function takeJob(
  queue: FairQueue<PendingMail>,
  allowance: Pick<ParseAllowance, 'isSpent'>,
  busy: AccountId | null,
): PendingMail[] {
  const mails: PendingMail[] = []
  let bytes = 0
  // Bytes that take CPU time: of a mail whose budget is used up, only the header is parsed.
  const costOf = ({ task }: PendingMail) =>
    allowance.isSpent(task) ? Math.min(task.size, SHARED_UP_TO_BYTES) : task.size
  const mayTake = (mail: PendingMail) => {
    const { task, isSettled, fallback } = mail
    if (task.accountId === busy && fallback === null && !allowance.isSpent(task)) return false
    if (isSettled || mails.length === 0) return true
    const cost = costOf(mail)
    return cost <= SHARED_UP_TO_BYTES && bytes + cost <= JOB_BYTES
  }
  while (mails.length < JOB_TASKS) {
    const mail = queue.take(mayTake)
    if (mail === null) break
    // Another thread has parsed it meanwhile.
    if (mail.isSettled) continue
    const cost = costOf(mail)
    mails.push(mail)
    bytes += cost
    if (cost > SHARED_UP_TO_BYTES) break
  }
  return mails
}

/** Whether an account's next mail has waited for long, or has a fallback, for which others have already waited. */
export function hasUrgent(queue: FairQueue<PendingMail>): boolean {
  const urgentBeforeMs = performance.now() - URGENT_AFTER_MS
  return queue.heads().some(({ fallback, sinceMs }) => fallback !== null || sinceMs < urgentBeforeMs)
}

/** A queue that serves its owners in turn, however many items each has. */
export class FairQueue<Item> {
  /** In the order of the owners' turns. */
  private readonly lines = new Map<string, Item[]>()
  private count = 0

  get size(): number {
    return this.count
  }

  /** The first item of each owner. */
  heads(): Item[] {
    return [...this.lines.values()].flatMap(([item]) => (item === undefined ? [] : [item]))
  }

  add(owner: string, item: Item): void {
    this.lineOf(owner).push(item)
    this.count += 1
  }

  /** Adds an item before the owner's other items. */
  addFirst(owner: string, item: Item): void {
    this.lineOf(owner).unshift(item)
    this.count += 1
  }

  /**
   * Removes and returns the next item that may be taken; null if there is none. Its owner moves to the end of the
   * queue.
   */
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

  /** Removes and returns all matching items. */
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
