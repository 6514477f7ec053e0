import { isTransient, shuttingDown } from '../http/problems.js'
import { tooManyWaits, type OpenWait, SEND_AGAIN } from './open-waits.js'

/** The views are read again after this time, since a signal may be lost. */
export const REREAD_MS = 10_000
/** The same if the views can't be read. */
const RETRY_MS = 500

/** What a wait reads again and again. */
export interface Watch<Result> {
  timeoutMs: number
  /** Examines what the result before has not examined; null the first time. */
  examine: (before: Result | null) => Promise<Result>
  isFound: (result: Result) => boolean
  /** The time until the next read if there is no signal; 0 if there is more to examine at once. */
  untilRereadMs: (result: Result) => number
  /** Resolves once every later change calls `ring`. */
  subscribe: (ring: () => void) => Promise<() => void>
  /** Waits for the bell of the wait, at most that long. */
  pause: (ms: number) => Promise<void>
}

/**
 * Resolves with the first result that is found, or with the last one after the timeout or if the client leaves. Throws
 * the errors of `examine`, unless they may be over before the timeout; shutting-down; and too-many-waits.
 */
export async function untilFound<Result>(wait: OpenWait, watch: Watch<Result>): Promise<Result> {
  const deadlineMs = performance.now() + watch.timeoutMs
  let latest: Result | null = null
  let unsubscribe: (() => void) | null = null
  try {
    for (;;) {
      const result: Result | Error = await watch.examine(latest).catch(ifTransient)
      if (!(result instanceof Error)) latest = result
      if (latest !== null && watch.isFound(latest)) return latest
      if (wait.end === 'shutting-down') throw shuttingDown(SEND_AGAIN)
      if (wait.end === 'crowded-out') throw tooManyWaits()
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0 || wait.end === 'client-gone') {
        if (result instanceof Error) throw result
        return result
      }
      if (unsubscribe === null) {
        unsubscribe = await watch.subscribe(() => wait.bell.ring())
        // A message may have arrived between the read and the subscription.
        continue
      }
      const pauseMs = result instanceof Error ? RETRY_MS : watch.untilRereadMs(result)
      if (pauseMs > 0) await watch.pause(Math.min(leftMs, pauseMs))
    }
  } finally {
    unsubscribe?.()
  }
}

/** Returns an error that may be over before the timeout. Throws any other error. */
function ifTransient(error: unknown): Error {
  if (isTransient(error)) return error
  throw error
}
