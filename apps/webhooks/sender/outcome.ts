/** What became of one attempt. */
export type AttemptOutcome = AnsweredAttempt | FailedAttempt

export interface AnsweredAttempt {
  kind: 'answered'
  /** 200 to 299, or 400 to 599. */
  status: number
  /** From the beginning of the attempt, the look-up included, to the answer's headers. */
  latencyMs: number
  /** The same to the end of what was read of it. */
  tookMs: number
  /** The first kilobyte of its content as it came, in its encoding; less where the rest did not come in time. */
  answer: Buffer
  /** 0 to 24 h, where Retry-After says so. */
  retryAfterMs: number | null
}

export interface FailedAttempt {
  kind: 'failed'
  reason: FailureReason
  /** A short sentence, without addresses. */
  detail: string
  /** From the beginning of the attempt to the failure; of a redirect, to the answer's headers. */
  latencyMs: number
  /** From the beginning of the attempt to its end. */
  tookMs: number
  /** Of a redirect; else null. */
  status: number | null
}

export type FailureReason =
  /** The URL is none that can be sent to. */
  | 'invalid-url'
  | 'refused-port'
  | 'refused-address'
  /** The name has no address, or nobody said so in time. */
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  /** The connection ended before the answer. */
  | 'reset'
  /** What came is no HTTP, or more header than is read. */
  | 'protocol'
  | 'redirect'

/** Why there is no answer. */
export class AttemptFault extends Error {
  override readonly name = 'AttemptFault'

  constructor(
    readonly reason: FailureReason,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`)
  }
}
