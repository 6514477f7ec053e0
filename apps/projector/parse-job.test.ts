import fc from 'fast-check'
import { mintId } from '#libs/domain/ids/mint.js'
import { ParseAllowance, WaitingMail } from './parse-task.js'
import { ParseJob } from './parse-job.js'

function waiting(): WaitingMail {
  const whose = { accountId: mintId('acc'), inboxId: mintId('inb'), messageId: mintId('msg') }
  const [key, sealed] = [Buffer.alloc(0), Buffer.alloc(0)]
  return new WaitingMail({ ...whose, receivedAt: new Date(), key, sealed, size: 0 })
}

function jobOf(place: { index: number }, mails: readonly WaitingMail[]): ParseJob {
  const thread = Object.assign(place, {
    cpuMs: () => Promise.resolve(null),
    stop: () => undefined,
    end: () => Promise.resolve(),
  })
  const limits = { timeoutMs: 1_000, patienceMs: 1_000, inboxBudgetMs: 1_000, accountBudgetMs: 1_000 }
  const allowance = new ParseAllowance(limits)
  return new ParseJob(thread, mails, { allowance, onLeft: () => undefined, onLooked: () => undefined })
}

describe('what a parsing thread was given', () => {
  it('is asked of exactly one, handed on or not, though the thread goes on meanwhile', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.nat(), fc.nat({ max: 1 }), (count, place, step) => {
        const thread = { index: place % count }
        const mails = Array.from({ length: count }, waiting)
        const job = jobOf(thread, mails)
        const handedOn = job.handOn()
        thread.index = Math.min(thread.index + step, count - 1)
        const left = job.unanswered()
        expect(left).toEqual([mails[place % count]])
        expect(new Set([...handedOn, ...left])).toEqual(new Set(mails))
        expect(handedOn).toHaveLength(count - 1)
      }),
    )
  })

  it('is not asked again once it is answered', () => {
    const mails = [waiting(), waiting(), waiting()]
    const job = jobOf({ index: 1 }, mails)
    for (const mail of mails.slice(0, 1)) mail.isSettled = true
    expect(job.handOn()).toEqual(mails.slice(2))
    for (const mail of mails.slice(1, 2)) mail.isSettled = true
    expect(job.unanswered()).toEqual([])
  })
})
