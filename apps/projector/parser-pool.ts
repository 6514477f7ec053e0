import pLimit from 'p-limit'
import { Piscina } from 'piscina'
import type { MessageId } from '#libs/typeid/typeid.js'
import type { ParseJob, ParseResult, ParseTask } from './parse-task.js'
import { warmingTasks } from './warming.js'

export interface ParserPoolOptions {
  threads: number
  timeoutMs: number
  memoryMib: number
  /** Told of a thread that ended with nobody waiting for it. */
  onThreadLost: (error: unknown) => void
}

/** Mails to a job: handing one over costs as much as parsing a small mail. */
const JOB_TASKS = 32
const JOB_BYTES = 1 << 20
/** A larger mail goes alone: one that takes long holds back none but its own partition. */
const SHARED_UP_TO_BYTES = 64 * 1024
/** A job that is not full begins at the earliest so long after the one before it: it gathers more. */
const GATHER_MS = 10

interface Waiting {
  task: ParseTask
  resolve: (result: ParseResult) => void
  reject: (reason: unknown) => void
}

/**
 * Parses mails in threads, each within its time and memory; one that defeats them is told so, not lost. What
 * waits for a thread, from whichever partition, goes to the next free one together: the busier, the larger the
 * jobs.
 */
export class ParserPool {
  private readonly pool: Piscina<ParseJob, ParseResult[]>
  private queue: Waiting[] = []
  private jobsUnderWay = 0
  private lastJobAtMs = -Infinity
  private gathering: NodeJS.Timeout | null = null
  private isClosed = false

  /** Jobs wait here, not in the pool, so that a job's time begins when a thread takes it. */
  private readonly whenThreadIsFree: ReturnType<typeof pLimit>

  constructor(private readonly options: ParserPoolOptions) {
    this.whenThreadIsFree = pLimit(options.threads)
    this.pool = new Piscina({
      filename: new URL('./parse-worker.js', import.meta.url).href,
      minThreads: options.threads,
      maxThreads: options.threads,
      resourceLimits: { maxOldGenerationSizeMb: options.memoryMib },
    })
    // One that runs out of memory while it is ended for its time: unheard, it would end the process.
    this.pool.on('error', options.onThreadLost)
  }

  /** Resolves once every thread runs and has read a mail: the first one costs many times what it costs later. */
  async warmUp(): Promise<void> {
    const tasks = await warmingTasks()
    const jobs = Array.from({ length: this.options.threads }, () => this.run({ tasks, defeat: null }))
    await Promise.all(jobs)
  }

  /**
   * Resolves with every mail's sealed body. Rejects where the pool is closed, or the signal aborts: mails that no
   * thread has taken by then are left.
   */
  async parse(tasks: readonly ParseTask[], signal: AbortSignal): Promise<Map<MessageId, Uint8Array>> {
    if (this.isClosed) throw new PoolClosedError()
    signal.throwIfAborted()
    const waits = tasks.map(
      (task) => new Promise<ParseResult>((resolve, reject) => this.queue.push({ task, resolve, reject })),
    )
    const asked = new Set(tasks)
    const leave = () => this.leave(asked, signal.reason)
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
    for (const { reject } of this.queue.splice(0)) reject(new PoolClosedError())
    await this.pool.destroy()
  }

  private leave(tasks: ReadonlySet<ParseTask>, reason: unknown): void {
    const left = this.queue.filter(({ task }) => tasks.has(task))
    this.queue = this.queue.filter(({ task }) => !tasks.has(task))
    for (const { reject } of left) reject(reason)
  }

  private takeUp(): void {
    while (this.jobsUnderWay < this.options.threads && this.queue.length > 0) {
      const gatherMs = this.lastJobAtMs + GATHER_MS - performance.now()
      if (this.queue.length < JOB_TASKS && gatherMs > 0) {
        this.takeUpIn(gatherMs)
        return
      }
      this.jobsUnderWay += 1
      this.lastJobAtMs = performance.now()
      void this.settle(this.nextJob()).finally(() => {
        this.jobsUnderWay -= 1
        this.takeUp()
      })
    }
  }

  private takeUpIn(ms: number): void {
    this.gathering ??= setTimeout(() => {
      this.gathering = null
      this.takeUp()
    }, ms)
  }

  private nextJob(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const { task } of this.queue) {
      const isShared = task.size <= SHARED_UP_TO_BYTES
      bytes += task.size
      if (count === JOB_TASKS || (count > 0 && (bytes > JOB_BYTES || !isShared))) break
      count += 1
      if (!isShared) break
    }
    return this.queue.splice(0, count)
  }

  /** Parses mails together; where that fails each for itself, so that none suffers from its neighbour. */
  private async settle(job: Waiting[]): Promise<void> {
    try {
      const results = await this.parseTogether(job.map(({ task }) => task))
      for (const [index, { resolve, reject }] of job.entries()) {
        const result = results[index]
        if (result === undefined) reject(new Error('the parser gave no answer'))
        else resolve(result)
      }
    } catch (error) {
      if (job.length > 1) await Promise.all(job.map((one) => this.settle([one])))
      else for (const { reject } of job) reject(error)
    }
  }

  private async parseTogether(tasks: ParseTask[]): Promise<ParseResult[]> {
    const attempt = await this.run({ tasks, defeat: null })
    if (attempt.defeat === null) return attempt.results
    // One of them did it: each for itself, so that the others are read.
    if (tasks.length > 1) return (await Promise.all(tasks.map((task) => this.parseTogether([task])))).flat()
    return (await this.run({ tasks, defeat: attempt.defeat })).results
  }

  private run(job: ParseJob): Promise<Attempt> {
    return this.whenThreadIsFree(async () => {
      // Without the parser nothing takes long, and there is no other way out.
      if (job.defeat !== null) return { results: await this.pool.run(job), defeat: null }
      const signal = AbortSignal.timeout(this.options.timeoutMs)
      try {
        return { results: await this.pool.run(job, { signal }), defeat: null }
      } catch (error) {
        if (signal.aborted) return { results: [], defeat: TIMEOUT }
        if (isOutOfMemory(error)) return { results: [], defeat: OUT_OF_MEMORY }
        throw error
      }
    })
  }
}

class PoolClosedError extends Error {
  override readonly name = 'PoolClosedError'

  constructor() {
    super('the parsing threads have been closed')
  }
}

type Attempt =
  { results: ParseResult[]; defeat: null } | { results: []; defeat: NonNullable<ParseJob['defeat']> }

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const
const OUT_OF_MEMORY = {
  code: 'parse-out-of-memory',
  detail: 'reading this mail took more memory than allowed',
} as const

function isOutOfMemory(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  )
}
