import { UnavailableError } from '#libs/runtime/errors.js'
/** A request that its client may send again: named by a digest, told apart from another by its fingerprint. */
export interface Repeatable {
  /** Digest of whose it is and what its client calls it. */
  id: string
  /** The same for the same request, of at most 200 characters. */
  fingerprint: string
}

/** The running of a request: what it makes up comes of the seed and the time, which another run of it is given too. */
export interface Run {
  id: string
  /** Of this run alone: what a run says that has lost its lease to another changes nothing. */
  token: string
  /** 32 random bytes. */
  seed: Uint8Array
  /** When the request came first, in milliseconds since 1970. */
  firstAtMs: number
}

export type Reservation =
  | { state: 'run'; run: Run }
  /** A run of the same request is under way, or was killed a moment ago. */
  | { state: 'in-use' }
  /** The id stands for another request, whose fingerprint is this. */
  | { state: 'reused'; fingerprint: string }
  | { state: 'stored'; answer: Uint8Array }

/**
 * What became of requests that may be sent again. Every method rejects with IdempotencyUnavailableError if the store
 * can't be reached or is full; what was asked for may then have been done.
 */
export interface IdempotencyStore {
  /** How long a run that does not renew its lease keeps others out. */
  readonly leaseMs: number
  /** Resolves once a run that is begun is durable, with its lease; of many at once one alone runs. */
  reserve(request: Repeatable): Promise<Reservation>
  /** Begins the lease of a run anew, unless it is another's by now. */
  renew(run: Run): Promise<void>
  /** Ends a run; resolves once its answer is durable, to be given from now on. */
  finish(run: Run, answer: Uint8Array): Promise<void>
  /** Ends a run without an answer: `resumable`, the next one is given the same seed; `undone`, all is as before it. */
  release(run: Run, left: 'resumable' | 'undone'): Promise<void>
  close(): Promise<void>
}

export class IdempotencyUnavailableError extends UnavailableError {
  override readonly name = 'IdempotencyUnavailableError'
}

export const SEED_BYTES = 32

/** A run that is not heard of for so long has died. */
export const LEASE_MS = 10_000

/** How long an answer is given again, and a request that has none yet may be completed. */
export const KEPT_MS = 86_400_000
