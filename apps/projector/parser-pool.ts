import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import { ParseJob, FairQueue, hasUrgent, JOB_TASKS, takeJob } from './parse-job.js'
import { ParseAllowance, type ParseAllowanceOptions, ordinaryMs } from './parse-task.js'
import {
  type Defeat,
  type DefeatReason,
  type ParseResult,
  type ParseTask,
  WaitingMail,
} from './parse-task.js'
import { type ParseThread, ParseThreads, type ParseThreadsOptions } from './parse-thread.js'

export interface ParserPoolOptions extends ParseAllowanceOptions, ParseThreadsOptions {
  /** Called with the CPU milliseconds of each mail that was read, and for each that was not, or not wholly. */
  onRead?: (cpuMs: number) => void
  onDefeat?: (code: Defeat['code']) => void
}

/** The least time between the beginnings of two jobs if the second one is not full: it gathers more. */
const GATHER_MS = 10

const OUT_OF_MEMORY = {
  code: 'parse-out-of-memory',
  detail: 'reading this mail took more memory than allowed',
} as const
const OVER_BUDGET = {
  code: 'parse-over-budget',
  detail: 'reading other mail of this inbox in the same minute took longer than allowed',
} as const

/**
 * Reads mails in threads, each within its limits of time and memory. Of a mail that goes past them less is shown: it is
 * not lost. What waits for a thread, from whichever partition, goes to the next free one together, each account in its
 * turn. docs/decisions/0017-fair-parsing.md says how one account's mail is kept from delaying another's.
 */
export class ParserPool {
  private readonly allowance: ParseAllowance
  private readonly queue = new FairQueue<WaitingMail>()
  private readonly jobs = new Set<ParseJob>()
  private readonly threads: ParseThreads
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(private readonly options: ParserPoolOptions) {
    this.allowance = new ParseAllowance(options)
    this.threads = new ParseThreads(options, () => this.startJobs())
  }

  /** Resolves once every thread runs and is warm. */
  async warmUp(): Promise<void> {
    await this.threads.whenWarm
  }

  /**
   * Resolves with every mail's sealed body. Rejects if the pool is closed, or the signal aborts: mails that no
   * thread has taken by then are left.
   */
  async parse(tasks: readonly ParseTask[], signal: AbortSignal): Promise<Map<MessageId, Uint8Array>> {
    if (this.isClosed) throw new PoolClosedError()
    signal.throwIfAborted()
    const mails = tasks.map((task) => new WaitingMail(task))
    for (const mail of mails) {
      this.allowance.see(mail.task.accountId)
      this.queue.add(mail.task.accountId, mail)
    }
    const asked = new Set(mails)
    const leave = () => this.leave((mail) => asked.has(mail), signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    // What other partitions bring in this turn of the event loop goes along.
    setImmediate(() => this.startJobs())
    try {
      const results = await Promise.all(mails.map(({ result }) => result))
      return new Map(results.map(({ messageId, body }) => [messageId, body]))
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    if (this.gathering !== null) clearTimeout(this.gathering)
    this.leave(() => true, new PoolClosedError())
    await this.threads.close()
  }

  private leave(isLeft: (mail: WaitingMail) => boolean, reason: unknown): void {
    for (const mail of this.queue.remove(isLeft)) mail.fail(reason)
  }

  private startJobs(): void {
    while (!this.isClosed && this.queue.size > 0) {
      const kind = this.threads.hasFree('usual') ? 'usual' : 'urgent'
      if (!this.threads.hasFree(kind) || (kind === 'urgent' && !this.isUrgent())) return
      const gatherMs = this.lastJobAtMs + GATHER_MS - performance.now()
      if (this.queue.size < JOB_TASKS && gatherMs > 0) {
        this.startJobsIn(gatherMs)
        return
      }
      const mails = takeJob(this.queue, this.allowance, this.busyAccount())
      if (mails.length === 0) return
      for (const mail of mails) {
        if (mail.defeat === null && this.allowance.isSpent(mail.task)) this.showLess(mail, OVER_BUDGET)
      }
      // Others have waited for a mail that was given up, and to read what is left of it takes no time.
      const isGivenUp = mails.some(({ defeat }) => defeat !== null)
      const thread = (isGivenUp ? this.threads.take('urgent') : null) ?? this.threads.take(kind)
      if (thread === null) return
      this.lastJobAtMs = performance.now()
      void this.run(thread, mails)
    }
  }

  private startJobsIn(ms: number): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = null
      this.startJobs()
    }, ms)
  }

  /** Whether mail is not to wait for a usual thread: one is slow, or all have been busy for long. */
  private isUrgent(): boolean {
    return [...this.jobs].some(({ isSlow }) => isSlow) || hasUrgent(this.queue)
  }

  /** The account that all threads but the last free one are busy with: that one is for others. */
  private busyAccount(): AccountId | null {
    if (this.threads.freeCount > 1) return null
    const [owner, ...others] = [...this.jobs].map(({ current }) => current?.task.accountId)
    return owner !== undefined && others.every((other) => other === owner) ? owner : null
  }

  private async run(thread: ParseThread, mails: readonly WaitingMail[]): Promise<void> {
    const job = new ParseJob(thread, mails, {
      allowance: this.allowance,
      onLeft: (left) => this.readAgain(left),
      // What waits may have become urgent.
      onLooked: () => this.startJobs(),
    })
    this.jobs.add(job)
    job.watch()
    try {
      const orders = mails.map(({ task, defeat }) => ({ task, defeat }))
      await thread.run(orders, (results) => {
        for (const result of results) this.settle(job, mails, result)
      })
      this.threads.giveBack(thread)
      for (const mail of job.unanswered()) mail.fail(new Error('the parser gave no answer'))
    } catch (error) {
      this.threads.replace(thread)
      this.recover(job, error)
    }
    job.stopWatching()
    this.jobs.delete(job)
    this.startJobs()
  }

  private settle(job: ParseJob, mails: readonly WaitingMail[], result: ParseResult): void {
    const mail = mails.find(({ task }) => task.messageId === result.messageId)
    if (mail === undefined) return
    const { task, defeat } = mail
    if (defeat === null) {
      this.allowance.spend(task, result.cpuMs - ordinaryMs(task.size) - job.chargedFor(mail))
    }
    this.options.onRead?.(result.cpuMs)
    if (result.hasFailed) this.options.onDefeat?.('parse-failed')
    mail.settle(result)
  }

  /** After a thread was lost: the mail that it was at is the cause, the others are read by another thread. */
  private recover(job: ParseJob, error: unknown): void {
    const cause = job.cut?.mail ?? job.current
    this.readAgain(job.unanswered().filter((mail) => mail !== cause))
    if (cause === null || cause.isSettled) return
    const reason = job.cut?.reason ?? (isOutOfMemory(error) ? OUT_OF_MEMORY : null)
    if (this.isClosed) cause.fail(new PoolClosedError())
    else if (reason === null || cause.defeat?.shows === 'nothing') cause.fail(error)
    else {
      this.showLess(cause, reason)
      this.readAgain([cause])
    }
  }

  private showLess(mail: WaitingMail, reason: DefeatReason): void {
    if (mail.defeat === null) this.options.onDefeat?.(reason.code)
    mail.showLess(reason)
  }

  /** Ahead of their account's others, since they have been waited for before. */
  private readAgain(mails: readonly WaitingMail[]): void {
    for (const mail of mails) {
      if (this.isClosed) mail.fail(new PoolClosedError())
      else this.queue.addFirst(mail.task.accountId, mail)
    }
  }
}

class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError'

  constructor() {
    super('the parsing threads have been closed')
  }
}

function isOutOfMemory(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null
  return code === 'ERR_WORKER_OUT_OF_MEMORY'
}
