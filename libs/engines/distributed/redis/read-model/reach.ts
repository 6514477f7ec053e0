import { answerOf, BULK_TIMEOUT_MS } from '#libs/engines/distributed/redis/client/answer.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'

/** One round trip. Rejects with ReadModelUnavailableError if no answer comes in time. */
export function reach<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  return answerOf(ask, unavailable)
}

/** One round trip on the connection for bulk. */
export function reachBulk<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  return answerOf(ask, unavailable, BULK_TIMEOUT_MS)
}

function unavailable(cause: unknown): ReadModelUnavailableError {
  return new ReadModelUnavailableError('Redis is out of reach', { cause })
}

/** Runs of no more than `most` items, so that no round trip is large. */
export function* runsOf<Item>(items: readonly Item[], most: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += most) yield items.slice(at, at + most)
}
