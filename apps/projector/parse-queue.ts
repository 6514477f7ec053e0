import type { AccountId } from '#libs/domain/ids/typeid.js'
import type { FairQueue } from '#libs/runtime/fairness/fair-queue.js'
import type { ParseAllowance } from './parse-budget.js'
import type { PendingMail } from './parse-task.js'

/*
 * The mails that wait for a parsing thread, and how they are grouped into jobs.
 */

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
