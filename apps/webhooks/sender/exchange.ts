import type { Socket } from 'node:net'
import { Client, type buildConnector, type Dispatcher } from 'undici'
import { AttemptError, exchangeError, type AttemptOutcome } from './attempt-outcome.js'

const MAX_KEPT_BYTES = 1_024
const MAX_READ_BYTES = 64 * 1_024

interface Response {
  status: number
  latencyMs: number
  retryAfter: string | undefined
}

/** One request and its response, as a handler of undici. */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Whether the request is sent on a connection that has been idle, which the endpoint may have closed meanwhile. */
  reusesConnection = false

  private readonly settled = Promise.withResolvers<AttemptOutcome>()
  /** Resolves before the deadline. Rejects with errors that the endpoint did not cause. */
  readonly outcome = this.settled.promise
  private controller: Dispatcher.DispatchController | null = null
  private timer: NodeJS.Timeout
  private isOver = false
  private response: Response | null = null
  private readonly kept: Buffer[] = []
  private readBytes = 0

  /**
   * Times are on the clock of `performance.now()`. The exchange ends at the deadline. `contentMs` is the timeout of the
   * response's content, which does not change the outcome.
   */
  constructor(
    private readonly startedAt: number,
    private readonly deadline: number,
    private readonly contentMs: number,
  ) {
    this.timer = this.abortIn(Infinity)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isOver) controller.abort(new Error('the attempt timed out before it started'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Interim responses precede the final one (RFC 9110, section 15.2).
    if (this.isOver || (status >= 100 && status < 200)) return
    const header = headers['retry-after']
    const retryAfter = Array.isArray(header) ? header[0] : header
    this.response = { status, latencyMs: this.elapsedMs(), retryAfter }
    clearTimeout(this.timer)
    this.timer = this.abortIn(this.contentMs)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const bytesLeft = MAX_KEPT_BYTES - this.readBytes
    if (bytesLeft > 0) this.kept.push(chunk.subarray(0, bytesLeft))
    this.readBytes += chunk.length
    if (this.readBytes > MAX_READ_BYTES) this.abort()
  }

  onResponseEnd(): void {
    this.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(exchangeError(error) ?? error)
  }

  /** Aborts after that time, or at the deadline if that is earlier. */
  private abortIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.abort(), Math.min(ms, this.deadline - performance.now()))
  }

  private abort(): void {
    const missing = this.controller === null ? 'no connection was opened' : 'the response did not arrive'
    const failure = new AttemptError('timeout', `${missing} in time`)
    this.end(failure)
    this.controller?.abort(failure)
  }

  /** A response counts once its headers have arrived, even if its content is cut off. */
  private end(failure?: Error): void {
    if (this.isOver) return
    this.isOver = true
    clearTimeout(this.timer)
    const { response } = this
    const tookMs = this.elapsedMs()
    if (response === null) {
      if (failure instanceof AttemptError) this.settled.resolve(failed(failure, tookMs))
      else this.settled.reject(failure ?? new Error('a response ended before its headers'))
    } else if (response.status < 100 || response.status > 599) {
      // RFC 9110, section 15.
      const invalid = new AttemptError('protocol', 'the response has an invalid status')
      this.settled.resolve(failed(invalid, response.latencyMs, tookMs))
    } else if (response.status >= 300 && response.status < 400) {
      const redirect = new AttemptError('redirect', `status ${response.status}, which is not followed`)
      this.settled.resolve({ ...failed(redirect, response.latencyMs, tookMs), status: response.status })
    } else {
      const { status, latencyMs, retryAfter } = response
      const answer = Buffer.concat(this.kept)
      const waitMs = retryAfterMs(retryAfter, new Date())
      this.settled.resolve({ kind: 'answered', status, latencyMs, tookMs, answer, retryAfterMs: waitMs })
    }
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt
  }
}

/** Times are from the start of the attempt. */
export function failed({ reason, detail }: AttemptError, latencyMs: number, tookMs = latencyMs) {
  return { kind: 'failed', reason, detail, latencyMs, tookMs, status: null } as const
}

const MAX_MS = 86_400_000
/** Every date format that a recipient must accept begins with a day's name (RFC 9110, section 5.6.7). */
const DAY_NAME = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/

/**
 * Parses Retry-After, which is a number of seconds or a date (RFC 9110, section 10.2.3), into milliseconds from 0 to
 * 24 h. Null if the header is missing or invalid.
 */
export function retryAfterMs(value: string | undefined, now: Date): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1_000)
  // The format of asctime has no time zone.
  const atMs = DAY_NAME.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : NaN
  return Number.isNaN(atMs) ? null : bounded(atMs - now.getTime())
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_MS)
}

/** One response with its interim responses, chunk extensions and trailers, which undici neither limits nor reports. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** A connection for consecutive exchanges that limits the bytes of each response. */
export class GuardedClient extends Client {
  private socket: Socket | null = null
  /** Bytes of earlier exchanges. */
  private bytesBefore = 0

  constructor(origin: URL, options: Client.Options, connect: buildConnector.connector) {
    super(origin, {
      ...options,
      connect: (wanted, callback) =>
        connect(wanted, (...result) => {
          if (result[1] !== null) this.watch(result[1])
          callback(...result)
        }),
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) handler.reusesConnection = this.stats.connected
    this.bytesBefore = this.socket?.bytesRead ?? 0
    return super.dispatch(options, handler)
  }

  private watch(socket: Socket): void {
    this.socket = socket
    this.bytesBefore = 0
    socket.on('readable', () => {
      if (socket.bytesRead - this.bytesBefore <= MAX_RESPONSE_BYTES) return
      socket.destroy(new AttemptError('protocol', 'the response is too large outside its content'))
    })
  }
}
