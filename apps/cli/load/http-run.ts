import { Pool } from 'undici'
import { Counts } from './counts.js'
import { Latency, type LatencyJson } from './latency.js'
import type { Operation } from './load-arguments.js'
import type { RunInbox } from './load-inboxes.js'
import type { LoadRun, ProgressCounts } from './progress.js'
import { Schedule, type ScheduleJson } from './schedule.js'

export interface HttpRunOptions {
  url: string
  key: string
  connections: number
  /** Requests per second, and their number. */
  perSecond: number
  total: number
  mix: ReadonlyMap<Operation, number>
  inboxes: readonly RunInbox[]
  /** Of the inboxes that `create` makes. */
  labels: Readonly<Record<string, string>>
  waitSeconds: number
}

export interface OperationReport {
  /** Requests that were sent. */
  requests: number
  /** Answers by status. */
  statuses: Record<string, number>
  /** Requests without a complete answer, by reason. */
  errors: Record<string, number>
  /** From the scheduled time, or the start, to the end of the answer. */
  latency_ms: { from_schedule: LatencyJson | null; from_start: LatencyJson | null }
}

export interface HttpReport extends ScheduleJson {
  scheduled: number
  requests: number
  operations: Partial<Record<Operation, OperationReport>>
  /** The longest Retry-After of an answer 429, in seconds; null if there was none. */
  max_retry_after_s: number | null
  is_interrupted: boolean
}

const GRACE_MS = 5_000
const ANSWER_TIMEOUT_MS = 90_000
/** Its multiples, modulo 1, are spread evenly. */
const GOLDEN_RATIO = 0.618_033_988_749_895

/** Sends requests to the API at a fixed rate, and counts the answers. Nothing is sent again. */
export class HttpRun implements LoadRun<void> {
  private readonly pool: Pool
  private readonly prefix: string
  private readonly results: ReadonlyMap<Operation, OperationResults>
  private readonly totalShare: number
  private readonly ending = Promise.withResolvers<undefined>()
  private readonly schedule: Schedule
  private timer: NodeJS.Timeout | null = null
  private endMs = 0
  private maxRetryAfterS: number | null = null
  private inFlight = 0
  private isInterrupted = false

  constructor(private readonly options: HttpRunOptions) {
    const { origin, pathname } = new URL(options.url)
    const timeouts = { headersTimeout: ANSWER_TIMEOUT_MS, bodyTimeout: ANSWER_TIMEOUT_MS }
    this.pool = new Pool(origin, { connections: options.connections, pipelining: 1, ...timeouts })
    this.prefix = pathname.replace(/\/+$/, '')
    this.results = new Map([...options.mix.keys()].map((operation) => [operation, new OperationResults()]))
    this.totalShare = [...options.mix.values()].reduce((sum, share) => sum + share, 0)
    this.schedule = new Schedule(options.perSecond, options.total, performance.now())
  }

  /** Resolves when each request has its answer or has failed, or after `interrupt`. */
  async run(): Promise<void> {
    this.wake()
    await this.ending.promise
    this.endMs = performance.now()
    if (this.timer !== null) clearTimeout(this.timer)
    await this.pool.destroy()
  }

  /** Sends no further request, and gives those in flight five seconds. */
  interrupt(): void {
    this.isInterrupted = true
    this.schedule.stop()
    if (this.inFlight === 0) this.ending.resolve(undefined)
    else setTimeout(() => this.ending.resolve(undefined), GRACE_MS).unref()
  }

  progress(): ProgressCounts {
    const all = [...this.results.values()]
    const settled = all.reduce((sum, { count }) => sum + count, 0)
    return {
      done: settled / this.options.total,
      sent: this.schedule.takenCount,
      errors: all.reduce((sum, { errors }) => sum + errors.total, 0),
      lagMs: this.schedule.lagMs(performance.now()),
    }
  }

  report(): HttpReport {
    const operations = [...this.results].map(([operation, results]) => [operation, results.toJson()])
    return {
      scheduled: this.options.total,
      requests: this.schedule.takenCount,
      operations: Object.fromEntries(operations) as Partial<Record<Operation, OperationReport>>,
      max_retry_after_s: this.maxRetryAfterS,
      ...this.schedule.toJson(this.endMs),
      is_interrupted: this.isInterrupted,
    }
  }

  /** Sends what is due, over at most as many connections as allowed, and sets the timer for the next arrival. */
  private wake(): void {
    const nowMs = performance.now()
    while (this.inFlight < this.options.connections) {
      const index = this.schedule.take(nowMs)
      if (index === null) break
      void this.send(index, nowMs)
    }
    const { nextMs } = this.schedule
    if (nextMs === null) {
      if (this.inFlight === 0) this.ending.resolve(undefined)
      return
    }
    if (this.timer !== null || this.inFlight === this.options.connections) return
    this.timer = setTimeout(
      () => {
        this.timer = null
        this.wake()
      },
      Math.max(nextMs - nowMs, 0),
    )
  }

  private async send(index: number, startMs: number): Promise<void> {
    const scheduledMs = this.schedule.timeOf(index)
    this.inFlight += 1
    const operation = this.operationOf(index)
    const results = this.results.get(operation)
    try {
      const { statusCode, headers, body } = await this.pool.request(this.requestOf(operation, index))
      await body.arrayBuffer()
      results?.answered(statusCode, performance.now(), { scheduledMs, startMs })
      if (statusCode === 429) this.noteRetryAfter(Number(headers['retry-after']))
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      results?.errors.add(code ?? message)
    }
    this.inFlight -= 1
    this.wake()
  }

  /** Distributes the operations evenly over the run, in proportion to their shares. */
  private operationOf(index: number): Operation {
    let position = ((index * GOLDEN_RATIO) % 1) * this.totalShare
    for (const [operation, share] of this.options.mix) {
      if (position < share) return operation
      position -= share
    }
    throw new RangeError('the position is within the shares')
  }

  private requestOf(operation: Operation, index: number) {
    const { key, inboxes, labels, waitSeconds } = this.options
    const headers = { authorization: `Bearer ${key}`, 'user-agent': 'mayfly-cli' }
    if (operation === 'create') {
      return {
        method: 'POST' as const,
        path: `${this.prefix}/v1/inboxes`,
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ labels }),
      }
    }
    const messages = `${this.prefix}/v1/inboxes/${inboxes[index % inboxes.length]?.id ?? ''}/messages`
    const path = operation === 'list' ? messages : `${messages}/wait?timeout=${waitSeconds}`
    return { method: 'GET' as const, path, headers }
  }

  private noteRetryAfter(seconds: number): void {
    if (seconds >= 0) this.maxRetryAfterS = Math.max(this.maxRetryAfterS ?? 0, seconds)
  }
}

class OperationResults {
  readonly errors = new Counts()
  private readonly statuses = new Counts()
  private readonly fromSchedule = new Latency()
  private readonly fromStart = new Latency()

  /** Requests that were answered or have failed. */
  get count(): number {
    return this.statuses.total + this.errors.total
  }

  answered(
    status: number,
    endMs: number,
    { scheduledMs, startMs }: { scheduledMs: number; startMs: number },
  ): void {
    this.statuses.add(String(status))
    this.fromSchedule.record(endMs - scheduledMs)
    this.fromStart.record(endMs - startMs)
  }

  toJson(): OperationReport {
    return {
      requests: this.count,
      statuses: this.statuses.toJson(),
      errors: this.errors.toJson(),
      latency_ms: { from_schedule: this.fromSchedule.toJson(), from_start: this.fromStart.toJson() },
    }
  }
}
