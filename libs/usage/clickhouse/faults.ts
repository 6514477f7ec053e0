import { messageOf } from '#libs/fault/message-of.js'
import { UsageUnavailableError } from '../usage-store.js'

/** Whatever ClickHouse did not do: it is away, out of memory or time, or does not take what it was given. */
export async function orUnavailable<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new UsageUnavailableError(`ClickHouse: ${messageOf(cause)}`, { cause })
  }
}
