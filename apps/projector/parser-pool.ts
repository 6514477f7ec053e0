import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import { isOutOfMemory } from '#libs/runtime/errors.js'
import { FairQueue } from '#libs/runtime/fairness/fair-queue.js'
import { baselineMs, ParseAllowance, type ParseAllowanceOptions } from './parse-budget.js'
import { ParseJob } from './parse-job.js'
import { hasUrgent, JOB_TASKS, takeJob } from './parse-queue.js'
import {
  PendingMail,
  type FallbackReason,
  type ParseFallback,
  type ParseResult,
  type ParseTask,
} from './parse-task.js'
import { ParseThreads, type ParseThread, type ParseThreadsOptions } from './parse-thread.js'

export interface ParserPoolOptions extends ParseAllowanceOptions, ParseThreadsOptions {
  /** Called with the CPU milliseconds of each mail. */
  onParsed?: (cpuMs: number) => void
  /** Called for each mail that was not parsed completely. */
  onFallback?: (code: ParseFallback['code']) => void
}

/** How long a job that is not full waits for more mails after the previous job has started. */
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
 * Parses mails in threads, within limits of time and memory. A mail that exceeds them is not lost: only its header, or
 * nothing, is shown. A free thread gets a job of mails from all partitions, taken from the accounts in turn.
 * docs/decisions/0017-fair-parsing.md describes how the mail of one account is kept from delaying others.
 */
export class ParserPool {
  private readonly allowance: ParseAllowance
  private readonly queue = new FairQueue<PendingMail>()
  private readonly jobs = new Set<ParseJob>()
  private readonly threads: ParseThreads
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(private readonly options: ParserPoolOptions) {
    this.allowance = new ParseAllowance(options)
    this.threads = new ParseThreads(options, () => this.startJobs())
  }

  /** Starts a thread if none has been started yet, so that the first mail does not wait for one. */
  warmUp(): void {
    if (!this.threads.hasStarted) this.threads.startAnother('usual')
  }

  /**
   * Resolves with the sealed body of every mail. Rejects if the pool is closed or the signal aborts: then mails that no
   * thread has taken yet are removed from the queue.
   */
  async parse(tasks: readonly ParseTask[], signal: AbortSignal): Promise<Map<MessageId, Uint8Array>> {
    if (this.isClosed) throw new PoolClosedError()
    signal.throwIfAborted()
    const mails = tasks.map((task) => new PendingMail(task))
    for (const mail of mails) {
      this.allowance.recordMail(mail.task.accountId)
      this.queue.add(mail.task.accountId, mail)
    }
    const requested = new Set(mails)
    const cancel = () => this.cancel((mail) => requested.has(mail), signal.reason)
    signal.addEventListener('abort', cancel, { once: true })
    // In the next turn of the event loop, so that mails of other partitions join the job.
    setImmediate(() => this.startJobs())
    try {
      const results = await Promise.all(mails.map(({ result }) => result))
      return new Map(results.map(({ messageId, body }) => [messageId, body]))
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    if (this.gathering !== null) clearTimeout(this.gathering)
    this.cancel(() => true, new PoolClosedError())
    await this.threads.close()
  }

  private cancel(isCancelled: (mail: PendingMail) => boolean, reason: unknown): void {
    for (const mail of this.queue.remove(isCancelled)) mail.fail(reason)
  }

  private startJobs(): void {
    while (!this.isClosed && this.queue.size > 0) {
      const kind = this.threads.hasFree('usual') ? 'usual' : 'urgent'
      if (kind === 'urgent') this.threads.startAnother('usual')
      if (kind === 'urgent' && !this.isUrgent()) return
      if (!this.threads.hasFree(kind)) {
        this.threads.startAnother(kind)
        return
      }
      const gatherMs = this.lastJobAtMs + GATHER_MS - performance.now()
      if (this.queue.size < JOB_TASKS && gatherMs > 0) {
        this.startJobsIn(gatherMs)
        return
      }
      const mails = takeJob(this.queue, this.allowance, this.busyAccount())
      if (mails.length === 0) return
      for (const mail of mails) {
        if (mail.fallback === null && this.allowance.isSpent(mail.task)) this.fallBack(mail, OVER_BUDGET)
      }
      // A mail with a fallback has already made others wait, and takes little time now.
      const hasFallback = mails.some(({ fallback }) => fallback !== null)
      const thread = (hasFallback ? this.threads.take('urgent') : null) ?? this.threads.take(kind)
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

  /** Whether mail should use the urgent thread: a job is slow, or a mail has waited for long. */
  private isUrgent(): boolean {
    return [...this.jobs].some(({ isSlow }) => isSlow) || hasUrgent(this.queue)
  }

  /** The account whose mail keeps all other threads busy, if one thread is free: that thread is for other accounts. */
  private busyAccount(): AccountId | null {
    if (this.threads.freeCount > 1) return null
    const [owner, ...others] = [...this.jobs].map(({ current }) => current?.task.accountId)
    return owner !== undefined && others.every((other) => other === owner) ? owner : null
  }

  private async run(thread: ParseThread, mails: readonly PendingMail[]): Promise<void> {
    const job = new ParseJob(thread, mails, {
      allowance: this.allowance,
      onReleased: (released) => this.requeue(released),
      // A waiting mail may have become urgent.
      onChecked: () => this.startJobs(),
    })
    this.jobs.add(job)
    job.watch()
    try {
      const requests = mails.map(({ task, fallback }) => ({ task, fallback }))
      await thread.run(requests, (results) => {
        for (const result of results) this.settle(job, mails, result)
      })
      this.threads.giveBack(thread)
      for (const mail of job.unanswered()) mail.fail(new Error('the parser returned no result'))
    } catch (error) {
      this.threads.drop(thread)
      this.recover(job, error)
    }
    job.stopWatching()
    this.jobs.delete(job)
    this.startJobs()
  }

  private settle(job: ParseJob, mails: readonly PendingMail[], result: ParseResult): void {
    const mail = mails.find(({ task }) => task.messageId === result.messageId)
    if (mail === undefined) return
    const { task, fallback } = mail
    if (fallback === null) {
      this.allowance.spend(task, result.cpuMs - baselineMs(task.size) - job.chargedFor(mail))
    }
    this.options.onParsed?.(result.cpuMs)
    if (result.hasFailed) this.options.onFallback?.('parse-failed')
    mail.settle(result)
  }

  /** After a thread was lost: the mail that it was parsing is the cause, and the others are queued again. */
  private recover(job: ParseJob, error: unknown): void {
    const cause = job.terminated?.mail ?? job.current
    this.requeue(job.unanswered().filter((mail) => mail !== cause))
    if (cause === null || cause.isSettled) return
    const reason = job.terminated?.reason ?? (isOutOfMemory(error) ? OUT_OF_MEMORY : null)
    if (this.isClosed) cause.fail(new PoolClosedError())
    else if (reason === null || cause.fallback?.shows === 'nothing') cause.fail(error)
    else {
      this.fallBack(cause, reason)
      this.requeue([cause])
    }
  }

  private fallBack(mail: PendingMail, reason: FallbackReason): void {
    if (mail.fallback === null) this.options.onFallback?.(reason.code)
    mail.fallBack(reason)
  }

  /** Queues mails again, before the other mails of their account. */
  private requeue(mails: readonly PendingMail[]): void {
    for (const mail of mails) {
      if (this.isClosed) mail.fail(new PoolClosedError())
      else this.queue.addFirst(mail.task.accountId, mail)
    }
  }
}

class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError'

  constructor() {
    super('the parser pool is closed')
  }
}
