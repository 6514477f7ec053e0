import { until } from '#test/harness/until.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { ParseAllowance } from './parse-allowance.js'
import { ParseJob } from './parse-job.js'
import { PendingMail } from './parse-task.js'
import { smallMail, taskOf } from './parse-task.test-support.js'

const SLOW_TIMEOUT_MS = 100
/** Twice the baseline of a small mail, which is added to the patience. */
const BASELINE_MS = 40

describe('a watched parse job', () => {
  const jobs: ParseJob[] = []

  afterEach(() => {
    for (const job of jobs.splice(0)) job.stopWatching()
  })

  it('keeps a mail that waits for the CPU, and terminates the thread of one that uses too much', async () => {
    const thread = threadThatTook(10)
    const job = await watched(thread, { timeoutMs: 60_000 })
    const enoughMs = performance.now() + 3 * (SLOW_TIMEOUT_MS + BASELINE_MS)
    await until('checks after its timeout', () => Promise.resolve(thread.measuredAtMs > enoughMs))
    expect(job.overdue).toBeNull()
    thread.tookMs = 100
    await until('the thread to be terminated', () => Promise.resolve(job.overdue !== null))
    expect(thread.ends).toBe(1)
  })

  it('terminates the thread of any mail after the timeout', async () => {
    const thread = threadThatTook(10)
    const job = await watched(thread, { timeoutMs: 200 })
    await until('the thread to be terminated', () => Promise.resolve(job.overdue !== null))
    expect(thread.ends).toBe(1)
  })

  /** Watches a job of one mail, while another account has mail too. */
  async function watched(thread: ThreadThatTook, { timeoutMs }: { timeoutMs: number }): Promise<ParseJob> {
    const allowance = new ParseAllowance({
      timeoutMs,
      slowTimeoutMs: SLOW_TIMEOUT_MS,
      inboxBudgetMs: 60_000,
      accountBudgetMs: 60_000,
    })
    const { open: _, ...task } = await taskOf(smallMail('small'))
    allowance.recordMail(mintId('acc'))
    allowance.recordMail(task.accountId)
    const job = new ParseJob(thread, [new PendingMail(task)], allowance)
    jobs.push(job)
    job.watch()
    return job
  }
})

interface ThreadThatTook {
  index: number
  /** CPU time of the current mail. */
  tookMs: number
  /** When it was last asked for that. */
  measuredAtMs: number
  ends: number
  cpuMs: () => Promise<number>
  end: () => Promise<void>
}

function threadThatTook(tookMs: number): ThreadThatTook {
  return {
    index: 0,
    tookMs,
    measuredAtMs: 0,
    ends: 0,
    cpuMs() {
      this.measuredAtMs = performance.now()
      return Promise.resolve(this.tookMs)
    },
    end() {
      this.ends += 1
      return Promise.resolve()
    },
  }
}
