import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { ParseAllowance } from './parse-allowance.js'
import type { WaitingMail } from './parse-task.js'

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
