import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import { JobWatch, ParseJob } from './parse-job.js'
import { ParseAllowance, type ParseAllowanceOptions, ordinaryMs } from './parse-allowance.js'
import { JOB_TASKS, ParseQueue } from './parse-queue.js'
import {
  type Defeat,
  type ParseResult,
  type ParseTask,
  WaitingMail,
  type DefeatReason,
} from './parse-task.js'
import { isOutOfMemory, type ParseThread } from './parse-thread.js'
import { ParseThreads, type ThreadKind } from './parse-threads.js'

export interface ParserPoolOptions extends ParseAllowanceOptions {
  threads: number
  memoryMib: number
  /** Told of a thread that ended by itself. */
  onThreadLost: (error: unknown) => void
  /** Told of each mail that was read, in CPU milliseconds, and of each that was not, or not wholly. */
  onRead?: (cpuMs: number) => void
  onDefeat?: (code: Defeat['code']) => void
}

/** A job that is not full begins at the earliest so long after the one before it: it gathers more. */
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
 * Reads mails in threads, each within its time and memory; one that defeats them is told so, not lost. What waits
 * for a thread, from whichever partition, goes to the next free one together, each account in its turn. How one
 * account's mail is kept from delaying another's stands in docs/decisions/0017-fair-parsing.md.
 */
export class ParserPool {
  private readonly allowance: ParseAllowance
  private readonly queue: ParseQueue
  private readonly watch: JobWatch
  private readonly threads: ParseThreads
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(private readonly options: ParserPoolOptions) {
    this.allowance = new ParseAllowance(options)
    this.queue = new ParseQueue(this.allowance)
    this.watch = new JobWatch({
      allowance: this.allowance,
      onLeft: (mails) => this.readAgain(mails),
      // What waits may have come to press.
      onLooked: () => this.takeUp(),
    })
    this.threads = new ParseThreads({
      count: options.threads,
      memoryMib: options.memoryMib,
      onLost: options.onThreadLost,
      onReady: () => this.takeUp(),
    })
  }

  /** Resolves once every thread runs and has read a mail: the first one costs many times what it costs later. */
  warmUp(): Promise<void> {
    return this.threads.ready()
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
      this.queue.add(mail)
    }
    const asked = new Set(mails)
    const leave = () => this.queue.leave((mail) => asked.has(mail), signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    // What other partitions bring in this turn of the event loop goes along.
    setImmediate(() => this.takeUp())
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
    this.watch.stop()
    this.queue.leave(() => true, new PoolClosedError())
    await this.threads.close()
  }

  private takeUp(): void {
    while (!this.isClosed && this.queue.size > 0) {
      const kind = this.threads.hasFree('usual') ? 'usual' : 'pressing'
      if (!this.threads.hasFree(kind) || (kind === 'pressing' && !this.isPressing())) return
      const gatherMs = this.lastJobAtMs + GATHER_MS - performance.now()
      if (this.queue.size < JOB_TASKS && gatherMs > 0) {
        this.takeUpIn(gatherMs)
        return
      }
      const mails = this.queue.takeJob(this.busyAccount())
      if (mails.length === 0) return
      for (const mail of mails) {
        if (mail.defeat === null && this.allowance.isSpent(mail.task)) this.showLess(mail, OVER_BUDGET)
      }
      const thread = this.threadFor(mails, kind)
      if (thread === null) return
      this.lastJobAtMs = performance.now()
      void this.run(new ParseJob(thread, mails))
    }
  }

  private takeUpIn(ms: number): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = null
      this.takeUp()
    }, ms)
  }

  /** Whether what waits is not to wait for a usual thread: one is slow, or all have been busy for long. */
  private isPressing(): boolean {
    return this.watch.isOneSlow || this.queue.isPressing()
  }

  /** The account that all threads are busy with but the last one that there is: that one is for others. */
  private busyAccount(): AccountId | null {
    return this.threads.free <= 1 ? this.watch.soleAccount : null
  }

  /** Others have waited for a mail that was given up, and what is left of it to read takes no time. */
  private threadFor(mails: readonly WaitingMail[], kind: ThreadKind): ParseThread | null {
    const isGivenUp = mails.some(({ defeat }) => defeat !== null)
    return (isGivenUp ? this.threads.take('pressing') : null) ?? this.threads.take(kind)
  }

  private async run(job: ParseJob): Promise<void> {
    this.watch.begin(job)
    const { thread, mails } = job
    try {
      const orders = mails.map(({ task, defeat }) => ({ task, defeat }))
      await thread.run(orders, (results) => this.settle(job, results))
      this.threads.giveBack(thread)
      for (const mail of job.unanswered()) mail.fail(new Error('the parser gave no answer'))
    } catch (error) {
      this.threads.replace(thread)
      this.recover(job, error)
    }
    this.watch.end(job)
    this.takeUp()
  }

  private settle(job: ParseJob, results: readonly ParseResult[]): void {
    for (const result of results) {
      const mail = job.mailOf(result.messageId)
      if (mail === null) continue
      // A thread goes on to no other mail behind a slow one, which has been charged with most of it.
      const chargedMs = mail === job.current ? job.chargedMs : 0
      if (mail.defeat === null) {
        this.allowance.charge(mail.task, result.cpuMs - ordinaryMs(mail.task.size) - chargedMs)
      }
      this.options.onRead?.(result.cpuMs)
      if (result.hasFailed) this.options.onDefeat?.('parse-failed')
      mail.settle(result)
    }
  }

  /** Of a thread that is gone: the mail that it was at did it, the others are read by another one. */
  private recover(job: ParseJob, error: unknown): void {
    const culprit = job.cut?.mail ?? job.current
    this.readAgain(job.unanswered().filter((mail) => mail !== culprit))
    if (culprit === null || culprit.isSettled) return
    const reason = job.cut?.reason ?? (isOutOfMemory(error) ? OUT_OF_MEMORY : null)
    if (this.isClosed) culprit.fail(new PoolClosedError())
    else if (reason === null || culprit.defeat?.shows === 'nothing') culprit.fail(error)
    else {
      this.showLess(culprit, reason)
      this.readAgain([culprit])
    }
  }

  private showLess(mail: WaitingMail, reason: DefeatReason): void {
    if (mail.defeat === null) this.options.onDefeat?.(reason.code)
    mail.showLess(reason)
  }

  private readAgain(mails: readonly WaitingMail[]): void {
    for (const mail of mails) {
      if (this.isClosed) mail.fail(new PoolClosedError())
      else this.queue.putBack(mail)
    }
  }
}

class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError'

  constructor() {
    super('the parsing threads have been closed')
  }
}
