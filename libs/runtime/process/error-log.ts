import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { ExpectedRetryError, messageOf } from '#libs/runtime/errors.js'

/** Background work may fail many times a second: a line for each failure would hide all others. */
const SAME_AFTER_MS = 10_000
const MAX_KNOWN = 100

interface Known {
  loggedAtMs: number
  unlogged: number
}

export interface ErrorLogOptions {
  /** A monotonic clock. */
  nowMs?: () => number
  /** What happens to the work that failed, unless a call says otherwise. */
  outcome?: string
}

/**
 * Returns a function that logs failures of background work. The same failure is logged at most every ten seconds, with
 * the number of times it occurred since. An ExpectedRetryError is logged at level debug, without a stack.
 */
export function errorLog(
  logger: Pick<Logger, 'error' | 'debug'>,
  { nowMs = () => performance.now(), outcome: usualOutcome = 'retrying' }: ErrorLogOptions = {},
): (error: unknown, during: string, outcome?: string) => void {
  const known = new LRUCache<string, Known>({ max: MAX_KNOWN })
  return (error, during, outcome = usualOutcome) => {
    if (error instanceof ExpectedRetryError) {
      logger.debug({ reason: error.message }, `${during}: ${outcome}`)
      return
    }
    const name = `${during}: ${messageOf(error)}`
    const before = known.get(name)
    if (before !== undefined && nowMs() - before.loggedAtMs < SAME_AFTER_MS) {
      before.unlogged += 1
      return
    }
    known.set(name, { loggedAtMs: nowMs(), unlogged: 0 })
    const again = before === undefined || before.unlogged === 0 ? {} : { timesSince: before.unlogged }
    logger.error({ err: error, ...again }, `${during} failed: ${outcome}`)
  }
}
