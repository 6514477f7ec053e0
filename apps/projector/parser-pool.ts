import pLimit from 'p-limit'
import { Piscina } from 'piscina'
import type { MessageId } from '#libs/typeid/typeid.js'
import type { ParseJob, ParseResult, ParseTask } from './parse-task.js'

export interface ParserPoolOptions {
  threads: number
  timeoutMs: number
  memoryMib: number
}

/** Mails to a job: handing one over costs as much as parsing a small mail. */
const JOB_TASKS = 32
const JOB_BYTES = 1 << 20

/** Parses mails in threads, each within its time and memory; one that defeats them is told so, not lost. */
export class ParserPool {
  private readonly pool: Piscina<ParseJob, ParseResult[]>

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
  }

  /** Resolves with every mail's sealed body. Rejects where the bytes don't open or the pool is closed. */
  async parse(tasks: readonly ParseTask[]): Promise<Map<MessageId, Uint8Array>> {
    const results = await Promise.all(jobsOf(tasks).map((job) => this.parseTogether(job)))
    return new Map(results.flat().map(({ messageId, body }) => [messageId, body]))
  }

  async close(): Promise<void> {
    await this.pool.destroy()
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

type Attempt =
  { results: ParseResult[]; defeat: null } | { results: []; defeat: NonNullable<ParseJob['defeat']> }

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const
const OUT_OF_MEMORY = {
  code: 'parse-out-of-memory',
  detail: 'reading this mail took more memory than allowed',
} as const

function jobsOf(tasks: readonly ParseTask[]): ParseTask[][] {
  const jobs: ParseTask[][] = []
  let bytes = 0
  for (const task of tasks) {
    const job = jobs.at(-1)
    bytes += task.sealed.length
    if (job === undefined || job.length === JOB_TASKS || bytes > JOB_BYTES) {
      jobs.push([task])
      bytes = task.sealed.length
    } else job.push(task)
  }
  return jobs
}

function isOutOfMemory(error: unknown): boolean {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  )
}
