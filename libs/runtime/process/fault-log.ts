import type { Logger } from 'pino'
import { LRUCache } from 'lru-cache'
import { messageOf, ExpectedRetryError } from '#libs/runtime/errors.js'

/** What fails in the background may fail many times a second: a line for each would bury all others. */
const SAME_AFTER_MS = 10_000
const MAX_KNOWN = 100

interface Known {
  loggedAtMs: number
  unlogged: number
}

export interface FaultLogOptions {
  /** A clock that only goes on. */
  nowMs?: () => number
  /** What becomes of what failed. */
  then?: string
}

/**
 * Logs faults in the background that are retried or skipped: the same one at most every ten seconds, with how
 * often it occurred since. An expected retry is a line at level debug, without a stack.
 */
export function faultLog(
  logger: Pick<Logger, 'error' | 'debug'>,
  { nowMs = () => performance.now(), then = 'tried again' }: FaultLogOptions = {},
): (error: unknown, during: string) => void {
  const known = new LRUCache<string, Known>({ max: MAX_KNOWN })
  return (error, during) => {
    if (error instanceof ExpectedRetryError) {
      logger.debug({ reason: error.message }, `${during}: ${then}`)
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
    logger.error({ err: error, ...again }, `${during} failed: ${then}`)
  }
}
