import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '#test/harness/until.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { ParseJob } from './parse-job.js'
import { ParseAllowance, WaitingMail } from './parse-task.js'
import { smallMail, taskOf } from './parse-task.test-support.js'

const PATIENCE_MS = 100
/** What a small mail has beside. */
const ORDINARY_MS = 40

describe('the watch over jobs', () => {
  const jobs: ParseJob[] = []
  afterEach(() => {
    for (const job of jobs.splice(0)) job.stopWatching()
  })

  it('gives up no mail that the machine lets wait, and one that takes more than its share', async () => {
    const thread = threadThatTook(10)
    const job = await watched(thread, { timeoutMs: 60_000 })
    await sleep(3 * (PATIENCE_MS + ORDINARY_MS))
    expect(job.cut).toBeNull()
    thread.tookMs = 100
    await until('it to be given up', () => Promise.resolve(job.cut !== null))
    expect(job.cut?.reason.code).toBe('parse-timeout')
    expect(thread.ends).toBe(1)
  })

  it('waits for no mail without end', async () => {
    const thread = threadThatTook(10)
    const job = await watched(thread, { timeoutMs: 200 })
    await until('it to be given up', () => Promise.resolve(job.cut !== null))
    expect(thread.ends).toBe(1)
  })

  /** A job of one mail, while another account has mail too. */
  async function watched(thread: ThreadThatTook, { timeoutMs }: { timeoutMs: number }): Promise<ParseJob> {
    const allowance = new ParseAllowance({
      timeoutMs,
      patienceMs: PATIENCE_MS,
      inboxBudgetMs: 60_000,
      accountBudgetMs: 60_000,
    })
    const { open: _, ...task } = await taskOf(smallMail('small'))
    allowance.see(mintId('acc'))
    allowance.see(task.accountId)
    const options = { allowance, onLeft: () => undefined, onLooked: () => undefined }
    const job = new ParseJob(thread, [new WaitingMail(task)], options)
    jobs.push(job)
    job.watch()
    return job
  }
})

interface ThreadThatTook {
  index: number
  /** CPU time of the mail under way. */
  tookMs: number
  ends: number
  cpuMs: () => Promise<number>
  stop: () => void
  end: () => Promise<void>
}

function threadThatTook(tookMs: number): ThreadThatTook {
  return {
    index: 0,
    tookMs,
    ends: 0,
    cpuMs() {
      return Promise.resolve(this.tookMs)
    },
    stop: () => undefined,
    end() {
      this.ends += 1
      return Promise.resolve()
    },
  }
}
