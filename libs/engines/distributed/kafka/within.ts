import { messageOf } from '#libs/runtime/fault/message-of.js'
import { beforeDeadline } from '#libs/runtime/timing/deadline.js'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'

/**
 * What was asked of Kafka, or a LogUnavailableError that says what failed: also where no answer came in time.
 */
export async function within<Result>(ms: number, what: string, asked: Promise<Result>): Promise<Result> {
  try {
    return await beforeDeadline(ms, asked)
  } catch (cause) {
    throw new LogUnavailableError(`${what}: ${messageOf(cause)}`, { cause })
  }
}
