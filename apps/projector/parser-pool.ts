import type { MessageId } from '#libs/typeid/typeid.js'
import { FairQueue } from './fair-queue.js'
import { ordinaryMs, ParseBudget } from './parse-budget.js'
import { ParseJob, type Waiting } from './parse-job.js'
import type { Defeat, ParseResult, ParseTask } from './parse-task.js'
import type { ParseThread } from './parse-thread.js'
import { ParseThreads, type ThreadKind } from './parse-threads.js'
import { RecentAccounts } from './recent-accounts.js'

export interface ParserPoolOptions {
  threads: number
  /** Wall-clock time of one mail at most, whatever else it may take. */
  timeoutMs: number
  /** The same of one that has come just now, behind which others wait, beside twice what is ordinary. */
  patienceMs: number
  memoryMib: number
  inboxBudgetMs: number
  accountBudgetMs: number
  /** Told of a thread that ended by itself. */
  onThreadLost: (error: unknown) => void
  /** Told of each mail that was read, in CPU milliseconds, and of each that was not, or not wholly. */
  onRead?: (cpuMs: number) => void
  onDefeat?: (code: Defeat['code']) => void
}

/** Mails to a job: handing one over costs as much as parsing a small mail. */
const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail goes alone. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** A job that is not full begins at the earliest so long after the one before it: it gathers more. */
const GATHER_MS = 10
const LOOK_EVERY_MS = 10
/** Mail that has waited so long for a thread presses. */
const PRESSES_AFTER_MS = 100
/**
 * A mail at which a thread is longer is slow: those beside it are read elsewhere, and another thread takes its place.
 * CPU time, since on a busy machine a thread waits for its turn; but not for ever.
 */
const SLOW_AFTER_MS = 25
const STALLED_AFTER_MS = 250
/** Mail that is older waits in nobody's way: views are being rebuilt. */
const FRESH_FOR_MS = 60_000
/** CPU time, beyond the ordinary, of what is shown of a mail that was given up. */
const HEADER_MS = 200

/**
 * Reads mails in threads, each within its time and memory; one that defeats them is told so, not lost. What waits
 * for a thread, from whichever partition, goes to the next free one together, each account in its turn. How one
 * account's mail is kept from delaying another's stands in docs/decisions/0017-fair-parsing.md.
 */
export class ParserPool {
  private readonly queue = new FairQueue<Waiting>()
  private readonly jobs = new Set<ParseJob>()
  private readonly threads: ParseThreads
  private readonly budget: ParseBudget
  private readonly accounts = new RecentAccounts()
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private looking: NodeJS.Timeout | null = null
  private isClosed = false

  constructor(private readonly options: ParserPoolOptions) {
    const { threads, memoryMib, onThreadLost, inboxBudgetMs, accountBudgetMs } = options
    this.budget = new ParseBudget({ inboxMs: inboxBudgetMs, accountMs: accountBudgetMs })
    this.threads = new ParseThreads({
      count: threads,
      memoryMib,
      onLost: onThreadLost,
      onReady: () => this.takeUp(),
    })
  }

  /** Resolves once every thread runs and has read a mail: the first one costs many times what it costs later. */
  warmUp(): Promise<void> {
    return this.threads.ready()
  }

  /**
   * Resolves with every mail's sealed body. Rejects where the pool is closed, or the signal aborts: mails that no
   * thread has taken by then are left.
   */
  async parse(tasks: readonly ParseTask[], signal: AbortSignal): Promise<Map<MessageId, Uint8Array>> {
    if (this.isClosed) throw new PoolClosedError()
    signal.throwIfAborted()
    for (const { accountId } of tasks) this.accounts.see(accountId, performance.now())
    const waits = tasks.map((task) => this.wait(task))
    const asked = new Set(tasks)
    const leave = () => this.leave(({ task }) => asked.has(task), signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    // What other partitions bring in this turn of the event loop goes along.
    setImmediate(() => this.takeUp())
    try {
      const results = await Promise.all(waits)
      return new Map(results.map(({ messageId, body }) => [messageId, body]))
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    if (this.gathering !== null) clearTimeout(this.gathering)
    this.lookNoMore()
    this.leave(() => true, new PoolClosedError())
    await this.threads.close()
  }

  private wait(task: ParseTask): Promise<ParseResult> {
    return new Promise((resolve, reject) =>
      this.queue.add(task.accountId, {
        task,
        defeat: null,
        sinceMs: performance.now(),
        isSettled: false,
        resolve,
        reject,
      }),
    )
  }

  private leave(isLeft: (mail: Waiting) => boolean, reason: unknown): void {
    for (const mail of this.queue.remove(isLeft)) fail(mail, reason)
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
      const mails = this.nextMails()
      if (mails.length === 0) return
      const thread = this.threadFor(mails, kind)
      if (thread === null) return
      this.lastJobAtMs = performance.now()
      void this.run(new ParseJob(thread, mails))
    }
  }

  /** Others have waited for a mail that was given up, and what is left of it to read takes no time. */
  private threadFor(mails: readonly Waiting[], kind: ThreadKind): ParseThread | null {
    const isGivenUp = mails.some(({ defeat }) => defeat !== null)
    return (isGivenUp ? this.threads.take('pressing') : null) ?? this.threads.take(kind)
  }

  private takeUpIn(ms: number): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = null
      this.takeUp()
    }, ms)
  }

  /** Whether what waits is not to wait for a usual thread: one is slow, or all have been busy for long. */
  private isPressing(): boolean {
    const now = performance.now()
    const isOneSlow = [...this.jobs].some(({ isSlow }) => isSlow)
    const presses = ({ defeat, sinceMs }: Waiting) => defeat !== null || now - sinceMs > PRESSES_AFTER_MS
    return isOneSlow || this.queue.heads().some(presses)
  }

  /** For one job: small ones together, of all accounts in turn, or a large one. */
  private nextMails(): Waiting[] {
    const busy = this.accountWithMostThreads()
    const mails: Waiting[] = []
    let bytes = 0
    while (mails.length < JOB_TASKS) {
      const mail = this.queue.take(({ task, isSettled, defeat }, accountId) => {
        if (accountId === busy && defeat === null && !this.isOverBudget(task)) return false
        const weight = this.weightOf(task)
        return (
          isSettled || mails.length === 0 || (weight <= SHARED_UP_TO_BYTES && bytes + weight <= JOB_BYTES)
        )
      })
      if (mail === null) break
      // One that another thread has answered for meanwhile.
      if (mail.isSettled) continue
      const weight = this.weightOf(mail.task)
      mails.push(this.withinBudget(mail))
      bytes += weight
      if (weight > SHARED_UP_TO_BYTES) break
    }
    return mails
  }

  /** The account that all threads are busy with but the last one that there is: that one is for others. */
  private accountWithMostThreads(): string | null {
    const [owner, ...others] = [...this.jobs].map(({ current }) => current?.task.accountId)
    const isOfOne = others.every((other) => other === owner)
    return owner !== undefined && isOfOne && this.threads.free <= 1 ? owner : null
  }

  /** Bytes, as far as they take time: of one whose budget is spent the header alone is read. */
  private weightOf(task: ParseTask): number {
    return this.isOverBudget(task) ? Math.min(task.size, SHARED_UP_TO_BYTES) : task.size
  }

  private isOverBudget(task: ParseTask): boolean {
    return this.isHurried(task) && this.budget.isSpent(task)
  }

  /** Whether others' mail may wait behind it. In views that are being rebuilt nobody's does. */
  private isHurried({ accountId, receivedAt }: ParseTask): boolean {
    const isFresh = Date.now() - receivedAt.getTime() < FRESH_FOR_MS
    return isFresh && !this.accounts.isAlone(accountId, performance.now())
  }

  private withinBudget(mail: Waiting): Waiting {
    if (mail.defeat === null && this.isOverBudget(mail.task)) this.defeat(mail, OVER_BUDGET)
    return mail
  }

  private async run(job: ParseJob): Promise<void> {
    this.jobs.add(job)
    this.looking ??= setInterval(() => this.look(), LOOK_EVERY_MS)
    const { thread, mails } = job
    try {
      const orders = mails.map(({ task, defeat }) => ({ task, defeat }))
      await thread.run(orders, (results) => this.settle(job, results))
      this.threads.giveBack(thread)
      for (const mail of job.unanswered()) fail(mail, new Error('the parser gave no answer'))
    } catch (error) {
      this.threads.replace(thread)
      this.recover(job, error)
    }
    this.jobs.delete(job)
    if (this.jobs.size === 0) this.lookNoMore()
    this.takeUp()
  }

  private lookNoMore(): void {
    if (this.looking !== null) clearInterval(this.looking)
    this.looking = null
  }

  private settle(job: ParseJob, results: readonly ParseResult[]): void {
    for (const result of results) {
      const mail = job.mailOf(result.messageId)
      if (mail === null) continue
      // A thread goes on to no other mail behind a slow one, which has been charged with most of it.
      const chargedMs = mail === job.current ? job.chargedMs : 0
      if (mail.defeat === null) {
        this.budget.spend(mail.task, result.cpuMs - ordinaryMs(mail.task.size) - chargedMs)
      }
      this.options.onRead?.(result.cpuMs)
      if (result.hasFailed) this.options.onDefeat?.('parse-failed')
      mail.isSettled = true
      mail.resolve(result)
    }
  }

  /** Of a thread that is gone: the mail that it was at did it, the others are read by another one. */
  private recover(job: ParseJob, error: unknown): void {
    const culprit = job.cut?.mail ?? job.current
    for (const mail of job.unanswered()) if (mail !== culprit) this.again(mail)
    if (culprit === null || culprit.isSettled) return
    const reason = job.cut?.reason ?? (isOutOfMemory(error) ? OUT_OF_MEMORY : null)
    if (this.isClosed) fail(culprit, new PoolClosedError())
    else if (reason === null || culprit.defeat?.shows === 'nothing') fail(culprit, error)
    else {
      this.defeat(culprit, reason)
      this.again(culprit)
    }
  }

  /** Shows less of a mail than was tried. */
  private defeat(mail: Waiting, reason: Pick<Defeat, 'code' | 'detail'>): void {
    if (mail.defeat === null) {
      this.options.onDefeat?.(reason.code)
      mail.defeat = { ...reason, shows: 'header' }
    } else mail.defeat = { ...mail.defeat, shows: 'nothing' }
  }

  private again(mail: Waiting): void {
    if (this.isClosed) fail(mail, new PoolClosedError())
    else this.queue.addFirst(mail.task.accountId, mail)
  }

  private look(): void {
    for (const job of this.jobs) {
      const seen = job.look()
      if (seen === null || seen.ms < SLOW_AFTER_MS || job.cut !== null) continue
      if (!job.isSlow && seen.ms > STALLED_AFTER_MS) this.markSlow(job)
      if (seen.ms > this.patienceMs(seen.mail)) this.cut(job, seen.mail)
      else if (!job.isAsking) void this.weigh(job, seen)
    }
    // What waits may have come to press.
    this.takeUp()
  }

  private patienceMs({ task }: Waiting): number {
    const { timeoutMs, patienceMs } = this.options
    if (!this.isHurried(task)) return timeoutMs
    // On a machine that is busy the ordinary takes longer too.
    return Math.min(patienceMs + 2 * ordinaryMs(task.size), timeoutMs)
  }

  private markSlow(job: ParseJob): void {
    job.isSlow = true
    job.thread.stop()
    for (const mail of job.handOn()) this.again(mail)
  }

  /** Charges the mail under way with what it takes, and ends it where nobody pays for it. */
  private async weigh(job: ParseJob, { mail, index }: { mail: Waiting; index: number }): Promise<void> {
    const { thread } = job
    job.isAsking = true
    const cpuMs = await thread.cpuMs()
    job.isAsking = false
    if (cpuMs === null || thread.index !== index || mail.isSettled) return
    if (cpuMs < SLOW_AFTER_MS && !job.isSlow) return
    if (!job.isSlow) this.markSlow(job)
    const excessMs = cpuMs - ordinaryMs(mail.task.size)
    if (mail.defeat !== null) {
      if (mail.defeat.shows === 'header' && excessMs > HEADER_MS) this.cut(job, mail)
      return
    }
    if (excessMs > job.chargedMs) {
      this.budget.spend(mail.task, excessMs - job.chargedMs)
      job.chargedMs = excessMs
      // What it has taken is spent, so that nothing is left is what counts.
      if (this.isHurried(mail.task) && this.budget.isOver(mail.task, excessMs)) this.cut(job, mail)
    }
  }

  private cut(job: ParseJob, mail: Waiting): void {
    if (job.cut !== null || mail.defeat?.shows === 'nothing') return
    job.cut = { mail, reason: TIMEOUT }
    this.budget.spendAll(mail.task)
    void job.thread.end()
  }
}

function fail(mail: Waiting, reason: unknown): void {
  mail.isSettled = true
  mail.reject(reason)
}

class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError'

  constructor() {
    super('the parsing threads have been closed')
  }
}

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const
const OUT_OF_MEMORY = {
  code: 'parse-out-of-memory',
  detail: 'reading this mail took more memory than allowed',
} as const
const OVER_BUDGET = {
  code: 'parse-over-budget',
  detail: 'reading other mail of this inbox in the same minute took longer than allowed',
} as const

function isOutOfMemory(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  )
}
