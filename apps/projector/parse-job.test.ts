import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import { ParseAllowance } from './parse-budget.js'
import { ParseJob } from './parse-job.js'
import { PendingMail } from './parse-task.js'

function pendingMail(): PendingMail {
  const whose = { accountId: mintId('acc'), inboxId: mintId('inb'), messageId: mintId('msg') }
  const [key, sealed] = [Buffer.alloc(0), Buffer.alloc(0)]
  return new PendingMail({ ...whose, receivedAt: new Date(), key, sealed, size: 0 })
}

function jobOf(progress: { index: number }, mails: readonly PendingMail[]): ParseJob {
  const thread = Object.assign(progress, {
    cpuMs: () => Promise.resolve(null),
    stop: () => undefined,
    end: () => Promise.resolve(),
  })
  const limits = { timeoutMs: 1_000, slowTimeoutMs: 1_000, inboxBudgetMs: 1_000, accountBudgetMs: 1_000 }
  const allowance = new ParseAllowance(limits)
  return new ParseJob(thread, mails, { allowance, onReleased: () => undefined, onChecked: () => undefined })
}

describe('the mails of a parse job', () => {
  it('are either released or still owned, even if the thread moves on meanwhile', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.nat(), fc.nat({ max: 1 }), (count, start, step) => {
        const thread = { index: start % count }
        const mails = Array.from({ length: count }, pendingMail)
        const job = jobOf(thread, mails)
        const released = job.releaseOthers()
        thread.index = Math.min(thread.index + step, count - 1)
        const owned = job.unanswered()
        expect(owned).toEqual([mails[start % count]])
        expect(new Set([...released, ...owned])).toEqual(new Set(mails))
        expect(released).toHaveLength(count - 1)
      }),
    )
  })

  it('are neither released nor unanswered once they have a result', () => {
    const mails = [pendingMail(), pendingMail(), pendingMail()]
    const job = jobOf({ index: 1 }, mails)
    for (const mail of mails.slice(0, 1)) mail.isSettled = true
    expect(job.releaseOthers()).toEqual(mails.slice(2))
    for (const mail of mails.slice(1, 2)) mail.isSettled = true
    expect(job.unanswered()).toEqual([])
  })
})
