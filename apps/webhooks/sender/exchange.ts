import type { Socket } from 'node:net'
import { type Dispatcher, Client, type buildConnector } from 'undici'
import { exchangeFault, AttemptFault, type AttemptOutcome } from './faults.js'

/** Of the answer's content. */
const MAX_KEPT_BYTES = 1_024
const MAX_READ_BYTES = 64 * 1_024

interface Response {
  status: number
  latencyMs: number
  retryAfter: string | undefined
}

/** One request and its answer. */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Resolves within the deadline; rejects with what is no fault of the endpoint. */
  readonly outcome: Promise<AttemptOutcome>
  /** Whether it goes out on a connection that has been idle, which the endpoint may have closed meanwhile. */
  isOnKeptConnection = false

  private readonly settled = Promise.withResolvers<AttemptOutcome>()
  private controller: Dispatcher.DispatchController | null = null
  private timer: NodeJS.Timeout
  private isOver = false
  private response: Response | null = null
  private readonly kept: Buffer[] = []
  private readBytes = 0

  /**
   * Times are those of `performance.now()`; past the deadline it is over, whatever it waits for. `contentMs`: for the
   * answer's content; what became of the attempt is known by then.
   */
  constructor(
    private readonly begunAt: number,
    private readonly deadline: number,
    private readonly contentMs: number,
  ) {
    this.outcome = this.settled.promise
    this.timer = this.cutIn(Infinity)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.isOver) controller.abort(new Error('its time was over before it began'))
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Interim answers come before the one (RFC 9110, section 15.2).
    if (this.isOver || (status >= 100 && status < 200)) return
    const said = headers['retry-after']
    const retryAfter = Array.isArray(said) ? said[0] : said
    this.response = { status, latencyMs: this.elapsedMs(), retryAfter }
    clearTimeout(this.timer)
    this.timer = this.cutIn(this.contentMs)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const bytesLeft = MAX_KEPT_BYTES - this.readBytes
    if (bytesLeft > 0) this.kept.push(chunk.subarray(0, bytesLeft))
    this.readBytes += chunk.length
    if (this.readBytes > MAX_READ_BYTES) this.cut()
  }

  onResponseEnd(): void {
    this.end(new Error('an answer has ended before its headers'))
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.end(exchangeFault(error) ?? error)
  }

  /** And at the deadline in any case. */
  private cutIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.cut(), Math.min(ms, this.deadline - performance.now()))
  }

  /** Ends it, and its connection. */
  private cut(): void {
    const waitedFor = this.controller === null ? 'there was no connection' : 'the answer did not come'
    const fault = new AttemptFault('timeout', `${waitedFor} in time`)
    this.end(fault)
    this.controller?.abort(fault)
  }

  /** An answer whose headers have come counts, however its content ends. */
  private end(fault: Error): void {
    if (this.isOver) return
    this.isOver = true
    clearTimeout(this.timer)
    const { response } = this
    const tookMs = this.elapsedMs()
    if (response === null) {
      if (fault instanceof AttemptFault) this.settled.resolve(failed(fault, tookMs))
      else this.settled.reject(fault)
    } else if (response.status < 100 || response.status > 599) {
      // RFC 9110, section 15.
      const invalid = new AttemptFault('protocol', 'the answer has a status that there is none of')
      this.settled.resolve(failed(invalid, response.latencyMs, tookMs))
    } else if (response.status >= 300 && response.status < 400) {
      const redirect = new AttemptFault('redirect', `it answered ${response.status}, which is not followed`)
      this.settled.resolve({ ...failed(redirect, response.latencyMs, tookMs), status: response.status })
    } else {
      const { status, latencyMs, retryAfter } = response
      const answer = Buffer.concat(this.kept)
      const waitMs = retryAfterMs(retryAfter, new Date())
      this.settled.resolve({ kind: 'answered', status, latencyMs, tookMs, answer, retryAfterMs: waitMs })
    }
  }

  private elapsedMs(): number {
    return performance.now() - this.begunAt
  }
}

/** Times from the beginning of the attempt. */
export function failed({ reason, detail }: AttemptFault, latencyMs: number, tookMs = latencyMs) {
  return { kind: 'failed', reason, detail, latencyMs, tookMs, status: null } as const
}

const MAX_MS = 86_400_000
/** The three forms of a date that a recipient must take (RFC 9110, section 5.6.7). */
const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const RFC_850_DATE = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/
const ASCTIME_DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * For how long Retry-After asks to wait: seconds or a date (RFC 9110, section 10.2.3), as milliseconds from 0 to 24 h.
 * Null if it is not there or says neither.
 */
export function retryAfterMs(value: string | undefined, now: Date): number | null {
  const text = value?.trim() ?? ''
  if (/^\d+$/.test(text)) return bounded(Number(text) * 1_000)
  const isDate = IMF_FIXDATE.test(text) || RFC_850_DATE.test(text)
  const atMs = isDate ? Date.parse(text) : ASCTIME_DATE.test(text) ? Date.parse(`${text} GMT`) : NaN
  return Number.isNaN(atMs) ? null : bounded(atMs - now.getTime())
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_MS)
}

/** Of one answer, interim ones, chunk extensions and trailers included: undici limits and reports none of these. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** A connection for one exchange after the other, which reads only so much of each. */
export class GuardedClient extends Client {
  private socket: Socket | null = null
  /** Of the exchanges before this one. */
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

  /** Tells the exchange whether the connection stood already. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) handler.isOnKeptConnection = this.stats.connected
    this.bytesBefore = this.socket?.bytesRead ?? 0
    return super.dispatch(options, handler)
  }

  private watch(socket: Socket): void {
    this.socket = socket
    this.bytesBefore = 0
    socket.on('readable', () => {
      if (socket.bytesRead - this.bytesBefore <= MAX_RESPONSE_BYTES) return
      socket.destroy(new AttemptFault('protocol', 'the answer has more around its content than is read'))
    })
  }
}
