import type { Dispatcher } from 'undici'
import { AttemptError, exchangeError, type FailureReason } from '#libs/runtime/outbound/attempt-error.js'

const MAX_KEPT_BYTES = 1_024
const MAX_READ_BYTES = 64 * 1_024

export type AttemptOutcome = AnsweredAttempt | FailedAttempt

export interface AnsweredAttempt {
  kind: 'answered'
  /** 200 to 299, or 400 to 599. */
  status: number
  /** From the start of the attempt, including the DNS lookup, to the response's headers. */
  latencyMs: number
  /** From the start of the attempt to the end of reading the response. */
  tookMs: number
  /** The first kilobyte of the response's content, still encoded; less if the rest did not arrive in time. */
  answer: Buffer
  /** The value of Retry-After, 0 to 24 h; null if there is none. */
  retryAfterMs: number | null
}

export interface FailedAttempt {
  kind: 'failed'
  reason: FailureReason
  /** A short sentence, without addresses. */
  detail: string
  /** From the start of the attempt to the failure; for a redirect, to the response's headers. */
  latencyMs: number
  /** From the start of the attempt to its end. */
  tookMs: number
  /** The status of a redirect; otherwise null. */
  status: number | null
}

interface Response {
  status: number
  latencyMs: number
  retryAfter: string | undefined
}

export interface ExchangeTimes {
  /** When the attempt started and must end, on the clock of `performance.now()`. */
  startedAt: number
  deadline: number
  /** The timeout of the response's content, which does not change the outcome. */
  contentMs: number
}

/**
 * Sends one request. Resolves with the outcome before the deadline, and rejects with errors that the endpoint did not
 * cause. A response counts once its headers have arrived, even if its content is cut off.
 */
export function exchange(
  pool: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { startedAt, deadline, contentMs }: ExchangeTimes,
): Promise<AttemptOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<AttemptOutcome>()
  const kept: Buffer[] = []
  let readBytes = 0
  let response: Response | null = null
  let controller: Dispatcher.DispatchController | null = null
  let isOver = false

  /** Aborts after that time, or at the deadline if that is earlier. */
  const abortIn = (ms: number) => setTimeout(abort, Math.min(ms, deadline - performance.now()))
  let timer = abortIn(Infinity)

  function abort(): void {
    const missing = controller === null ? 'no connection was opened' : 'the response did not arrive'
    const failure = new AttemptError('timeout', `${missing} in time`)
    end(failure)
    controller?.abort(failure)
  }

  function end(failure: Error | null): void {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    const tookMs = performance.now() - startedAt
    if (response !== null) resolve(outcomeOf(response, Buffer.concat(kept), tookMs))
    else if (failure instanceof AttemptError) resolve(failed(failure, tookMs))
    else reject(failure ?? new Error('a response ended before its headers'))
  }

  pool.dispatch(request, {
    onRequestStart(started) {
      controller = started
      if (isOver) started.abort(new Error('the attempt timed out before it started'))
    },
    onResponseStart(_controller, status, headers) {
      // Interim responses precede the final one (RFC 9110, section 15.2).
      if (isOver || (status >= 100 && status < 200)) return
      const [retryAfter] = [headers['retry-after'] ?? []].flat()
      response = { status, latencyMs: performance.now() - startedAt, retryAfter }
      clearTimeout(timer)
      timer = abortIn(contentMs)
    },
    onResponseData(_controller, chunk) {
      const bytesLeft = MAX_KEPT_BYTES - readBytes
      if (bytesLeft > 0) kept.push(chunk.subarray(0, bytesLeft))
      readBytes += chunk.length
      if (readBytes > MAX_READ_BYTES) abort()
    },
    onResponseEnd: () => end(null),
    onResponseError: (_controller, error) => end(exchangeError(error) ?? error),
  })
  return promise
}

function outcomeOf(
  { status, latencyMs, retryAfter }: Response,
  answer: Buffer,
  tookMs: number,
): AttemptOutcome {
  if (status < 100 || status > 599) {
    // RFC 9110, section 15.
    return failed(new AttemptError('protocol', 'the response has an invalid status'), latencyMs, tookMs)
  }
  if (status >= 300 && status < 400) {
    const redirect = new AttemptError('redirect', `status ${status}, which is not followed`)
    return { ...failed(redirect, latencyMs, tookMs), status }
  }
  const waitMs = retryAfterMs(retryAfter, new Date())
  return { kind: 'answered', status, latencyMs, tookMs, answer, retryAfterMs: waitMs }
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
