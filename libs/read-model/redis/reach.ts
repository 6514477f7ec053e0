import type { ChainableCommander } from 'ioredis'
import { answerOf, answersOf } from '#libs/redis-client/answer.js'
import { ReadModelUnavailableError } from '../queries.js'

/** One round trip. Rejects with ReadModelUnavailableError where no answer comes in time. */
export function reach<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  return answerOf(ask, (cause) => new ReadModelUnavailableError('Redis is out of reach', { cause }))
}

/** The answers of a pipeline, in order. All its keys lie in one hash slot. */
export function reachAll(pipeline: ChainableCommander): Promise<unknown[]> {
  return reach(() => answersOf(pipeline))
}

/** Runs of no more than `most` items, so that no round trip is large. */
export function* runsOf<Item>(items: readonly Item[], most: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += most) yield items.slice(at, at + most)
}
