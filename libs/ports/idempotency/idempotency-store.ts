import { UnavailableError } from '#libs/runtime/errors.js'

/** A request that its client may send again. */
export interface Repeatable {
  /** A digest of the client and of the name that it gave the request. */
  id: string
  /** The same for the same request, of at most 200 characters. */
  fingerprint: string
}

/** One run of a request. Another run of it has the same seed and time, and so generates the same ids and secrets. */
export interface Run {
  id: string
  /** Of this run only: a run that has lost its lease to another can't change anything. */
  token: string
  /** 32 random bytes. */
  seed: Uint8Array
  /** When the request first came, in milliseconds since 1970. */
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
 * The outcomes of requests that may be sent again. Every method rejects with IdempotencyUnavailableError if the store
 * can't be reached or is full; the change may have been made nevertheless.
 */
export interface IdempotencyStore {
  /** How long a run that does not renew its lease excludes others. */
  readonly leaseMs: number
  /** Resolves once a run that begins is durable. Of many concurrent calls, one gets to run. */
  reserve(request: Repeatable): Promise<Reservation>
  /** Renews the lease of a run, unless another run has it by now. */
  renew(run: Run): Promise<void>
  /** Ends a run; resolves once its answer is durable. Repeats are given that answer from then on. */
  finish(run: Run, answer: Uint8Array): Promise<void>
  /** Ends a run without an answer: `resumable`, and the next has the same seed; or `undone`, as if it never ran. */
  release(run: Run, left: 'resumable' | 'undone'): Promise<void>
  close(): Promise<void>
}

export class IdempotencyUnavailableError extends UnavailableError {
  override readonly name = 'IdempotencyUnavailableError'
}

export const SEED_BYTES = 32

/** A run that does not renew its lease for so long has died. */
export const LEASE_MS = 10_000

/** How long an answer is kept, and a request without one can be completed. */
export const KEPT_MS = 86_400_000
