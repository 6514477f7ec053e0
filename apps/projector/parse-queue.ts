import type { AccountId } from '#libs/domain/ids/typeid.js'
import { FairQueue } from './fair-queue.js'
import type { ParseAllowance } from './parse-allowance.js'
import type { ParseTask } from './parse-task.js'
import type { WaitingMail } from './waiting-mail.js'

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
