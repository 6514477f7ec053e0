import { UnavailableError } from '#libs/runtime/errors.js'

/** A request that its client may send again. */
export interface Repeatable {
  /** A digest of the client and the request's Idempotency-Key. */
  id: string
  /** The same for the same request; at most 200 characters. */
  fingerprint: string
}

/** One run of a request. A later run of it has the same seed and time, and so generates the same ids and secrets. */
export interface Run {
  id: string
  /** Identifies the run: a run that has lost its lease to another run can't change anything. */
  token: string
  /** 32 random bytes. */
  seed: Uint8Array
  /** When the request first arrived, in milliseconds since 1970. */
  firstAtMs: number
}

export type Reservation =
  | { state: 'run'; run: Run }
  /** A run of the same request is in progress, or was killed a moment ago. */
  | { state: 'in-use' }
  /** The id was used for another request, with this fingerprint. */
  | { state: 'reused'; fingerprint: string }
  | { state: 'stored'; answer: Uint8Array }

/**
 * The answers of requests that may be repeated. All methods reject with IdempotencyUnavailableError if the store is
 * unavailable or full; a change may have been made nevertheless.
 */
export interface IdempotencyStore {
  /** How long a run excludes others without renewing its lease. */
  readonly leaseMs: number
  /** Resolves once the new run, if any, is durable. Only one of many concurrent calls starts a run. */
  reserve(request: Repeatable): Promise<Reservation>
  /** Renews the lease of a run, unless another run has taken over. */
  renew(run: Run): Promise<void>
  /** Ends a run; resolves once its answer is durable. Repeats get that answer from then on. */
  finish(run: Run, answer: Uint8Array): Promise<void>
  /** Ends a run without an answer: `resumable` keeps the seed for the next run, `undone` forgets the run. */
  release(run: Run, state: 'resumable' | 'undone'): Promise<void>
  close(): Promise<void>
}

export class IdempotencyUnavailableError extends UnavailableError {}

export const SEED_BYTES = 32

/** A run that has not renewed its lease for this long is considered dead. */
export const LEASE_MS = 10_000

/** How long an answer is kept, and a request without an answer can be resumed. */
export const KEPT_MS = 86_400_000
