import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ParseAllowance } from './parse-allowance.js'
import type { ParseTask, WaitingMail } from './parse-task.js'

/** Mails to a job: handing one over costs as much as parsing a small mail. */
export const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail goes alone. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** Mail that has waited so long for a thread presses. */
const PRESSES_AFTER_MS = 100

/** Mail that waits for a thread, from whichever partition: who is read next, and beside whom. */
export class ParseQueue {
  private readonly mails = new FairQueue<WaitingMail>()

  constructor(private readonly allowance: Pick<ParseAllowance, 'isSpent'>) {}

  get size(): number {
    return this.mails.size
  }

  add(mail: WaitingMail): void {
    this.mails.add(mail.task.accountId, mail)
  }

  /** For one that has been waited for before: ahead of its account's others. */
  putBack(mail: WaitingMail): void {
    this.mails.addFirst(mail.task.accountId, mail)
  }

  leave(isLeft: (mail: WaitingMail) => boolean, reason: unknown): void {
    for (const mail of this.mails.remove(isLeft)) mail.fail(reason)
  }

  /** Whether somebody's next mail has waited for long, or others have waited for it long enough. */
  isPressing(): boolean {
    const now = performance.now()
    return this.mails
      .heads()
      .some(({ defeat, sinceMs }) => defeat !== null || now - sinceMs > PRESSES_AFTER_MS)
  }

  /**
   * For one job: small ones together, of all accounts in turn, or a large one. Of an account that is to leave a thread
   * to others just what takes no time.
   */
  takeJob(busy: AccountId | null): WaitingMail[] {
    const mails: WaitingMail[] = []
    let bytes = 0
    while (mails.length < JOB_TASKS) {
      const mail = this.mails.take(({ task, isSettled, defeat }) => {
        if (task.accountId === busy && defeat === null && !this.allowance.isSpent(task)) return false
        const weight = this.weightOf(task)
        return (
          isSettled || mails.length === 0 || (weight <= SHARED_UP_TO_BYTES && bytes + weight <= JOB_BYTES)
        )
      })
      if (mail === null) break
      // One that another thread has answered for meanwhile.
      if (mail.isSettled) continue
      const weight = this.weightOf(mail.task)
      mails.push(mail)
      bytes += weight
      if (weight > SHARED_UP_TO_BYTES) break
    }
    return mails
  }

  /** Bytes, as far as they take time: of one whose budget is spent the header alone is read. */
  private weightOf(task: ParseTask): number {
    return this.allowance.isSpent(task) ? Math.min(task.size, SHARED_UP_TO_BYTES) : task.size
  }
}

/** What waits, by whom it waits for: each gets its turn, however much the others bring. */
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

  /** The next in turn of those that may be taken; null for none. Their owner's next turn is behind all others'. */
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
