import { setTimeout as pause } from 'node:timers/promises'
import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import { isOutOfMemory, NamedError } from '#libs/runtime/errors.js'
import { FairQueue } from '#libs/runtime/fairness/fair-queue.js'
import { baselineMs, ParseAllowance, type ParseAllowanceOptions } from './parse-allowance.js'
import { ParseJob } from './parse-job.js'
import {
  PendingMail,
  type FallbackReason,
  type ParseFallback,
  type ParseResult,
  type ParseTask,
} from './parse-task.js'
import { ParseThread } from './parse-thread.js'

export interface ParserPoolOptions extends ParseAllowanceOptions {
  threads: number
  memoryMib: number
  /** Called with the error of a thread that ended by itself. */
  onThreadLost: (error: unknown) => void
  /** Called with the CPU milliseconds of each mail. */
  onParsed?: (cpuMs: number) => void
  /** Called for each mail that was not parsed completely. */
  onFallback?: (code: ParseFallback['code']) => void
}

/** Mails in a job: passing one job to a thread costs as much as parsing a small mail. */
const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail is alone in its job. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** How long a job that is not full waits for more mails after the previous job has started. */
const GATHER_MS = 10
const RETRY_MS = 500

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const
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
 *
 * Threads start when they are first needed, because each takes about 0.1 s of CPU time and 20 MiB of memory, and are
 * warmed up before use.
 */
export class ParserPool {
  private readonly allowance: ParseAllowance
  private readonly queue = new FairQueue<PendingMail>()
  private readonly jobs = new Set<ParseJob>()
  /** All threads that have been started and not ended, and those without a job. */
  private readonly threads = new Set<ParseThread>()
  private readonly free: ParseThread[] = []
  private isStartingThread = false
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(private readonly options: ParserPoolOptions) {
    this.allowance = new ParseAllowance(options)
  }

  /** Starts a thread if none has been started yet, so that the first mail does not wait for one. */
  warmUp(): void {
    if (this.threads.size === 0) void this.startThread()
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
    await Promise.all([...this.threads].map((thread) => thread.end()))
  }

  private cancel(isCancelled: (mail: PendingMail) => boolean, reason: unknown): void {
    for (const mail of this.queue.remove(isCancelled)) mail.fail(reason)
  }

  private startJobs(): void {
    while (!this.isClosed && this.queue.size > 0) {
      const thread = this.free.at(-1)
      if (thread === undefined) {
        void this.startThread()
        return
      }
      const gatherMs = this.lastJobAtMs + GATHER_MS - performance.now()
      if (this.queue.size < JOB_TASKS && gatherMs > 0) {
        this.startJobsIn(gatherMs)
        return
      }
      const mails = this.takeJob()
      if (mails.length === 0) return
      this.free.pop()
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

  /** Starts one more thread if there may be more, one at a time. */
  private async startThread(): Promise<void> {
    const { threads: max, memoryMib, onThreadLost } = this.options
    if (this.isStartingThread || this.threads.size >= max) return
    this.isStartingThread = true
    const thread = new ParseThread(memoryMib, onThreadLost)
    this.threads.add(thread)
    try {
      await thread.run([], () => undefined)
      this.free.push(thread)
    } catch {
      // `onThreadLost` reports why.
      this.drop(thread)
      if (!this.isClosed) await pause(RETRY_MS)
    }
    this.isStartingThread = false
    this.startJobs()
  }

  /** Ends a thread, if it has not ended yet. Another one starts when it is needed. */
  private drop(thread: ParseThread): void {
    this.threads.delete(thread)
    void thread.end()
  }

  /** Takes the mails of one job from the queue: small mails of all accounts in turn, or one large mail. */
  private takeJob(): PendingMail[] {
    const { allowance } = this
    const busy = this.busyAccount()
    const mails: PendingMail[] = []
    let bytes = 0
    // Bytes that take CPU time: of a mail whose budget is used up, only the header is parsed.
    const costOf = ({ task, fallback }: PendingMail) =>
      fallback === null && !allowance.isSpent(task) ? task.size : Math.min(task.size, SHARED_UP_TO_BYTES)
    const mayTake = (mail: PendingMail) => {
      const cost = costOf(mail)
      if (cost <= SHARED_UP_TO_BYTES) return bytes + cost <= JOB_BYTES
      return mails.length === 0 && (mail.task.accountId !== busy || !allowance.mayDelayOthers(mail.task))
    }
    while (mails.length < JOB_TASKS) {
      const mail = this.queue.take(mayTake)
      if (mail === null) break
      const cost = costOf(mail)
      bytes += cost > SHARED_UP_TO_BYTES ? JOB_BYTES : cost
      if (mail.fallback === null && allowance.isSpent(mail.task)) this.fallBack(mail, OVER_BUDGET)
      mails.push(mail)
    }
    return mails
  }

  /** The account whose mail keeps all other threads busy, if one is left: that one takes no large mail of it. */
  private busyAccount(): AccountId | null {
    if (this.options.threads - this.jobs.size > 1) return null
    const [owner, ...others] = [...this.jobs].map(({ current }) => current?.task.accountId)
    return owner !== undefined && others.every((other) => other === owner) ? owner : null
  }

  private async run(thread: ParseThread, mails: readonly PendingMail[]): Promise<void> {
    const job = new ParseJob(thread, mails, this.allowance)
    this.jobs.add(job)
    job.watch()
    try {
      const requests = mails.map(({ task, fallback }) => ({ task, fallback }))
      await thread.run(requests, (results) => {
        for (const result of results) this.settle(mails, result)
      })
      this.free.push(thread)
      for (const mail of job.unanswered) mail.fail(new Error('the parser returned no result'))
    } catch (error) {
      this.drop(thread)
      this.recover(job, error)
    }
    job.stopWatching()
    this.jobs.delete(job)
    this.startJobs()
  }

  private settle(mails: readonly PendingMail[], result: ParseResult): void {
    const mail = mails.find(({ task }) => task.messageId === result.messageId)
    if (mail === undefined) return
    const { task, fallback } = mail
    if (fallback === null) this.allowance.spend(task, result.cpuMs - baselineMs(task.size))
    this.options.onParsed?.(result.cpuMs)
    if (result.hasFailed) this.options.onFallback?.('parse-failed')
    mail.settle(result)
  }

  /**
   * After a thread was lost: the mail that it was parsing is the cause, and is parsed less completely. All mails without
   * a result are queued again, before the other mails of their accounts.
   */
  private recover(job: ParseJob, error: unknown): void {
    const cause = job.overdue ?? job.current
    const reason = job.overdue !== null ? TIMEOUT : isOutOfMemory(error) ? OUT_OF_MEMORY : null
    for (const mail of job.unanswered.toReversed()) {
      if (this.isClosed) mail.fail(new PoolClosedError())
      else if (mail !== cause) this.queue.addFirst(mail.task.accountId, mail)
      else if (reason === null || mail.fallback?.shows === 'nothing') mail.fail(error)
      else {
        this.fallBack(mail, reason)
        this.queue.addFirst(mail.task.accountId, mail)
      }
    }
  }

  private fallBack(mail: PendingMail, reason: FallbackReason): void {
    if (mail.fallback === null) this.options.onFallback?.(reason.code)
    mail.fallBack(reason)
  }
}

class PoolClosedError extends NamedError {
  constructor() {
    super('the parser pool is closed')
  }
}
