import type { ChainableCommander } from 'ioredis'
import { ReadModelUnavailableError } from '#libs/ports/read-model/queries.js'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'

/** No request waits longer for one answer. */
export const COMMAND_TIMEOUT_MS = 2_000
/** The same for what is as large as a mail may be, on a connection of its own. */
export const BULK_TIMEOUT_MS = 60_000
/** Past what the client itself gives a command: it holds some back, while it learns a Cluster's nodes. */
const HELD_BACK_MS = 500

/** Answers of a Redis that can't serve now and may later, once an operator has seen to it. Any other one means that what was asked is wrong. */
const CANNOT_NOW =
  /^(LOADING|OOM|BUSY|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|NOAUTH|WRONGPASS|NOPERM)\b/

/**
 * What Redis answers. If no answer comes in time, or one that says that Redis can't serve now, rejects with what
 * `unavailable` makes of the cause; the request may have been carried out, or may still be.
 */
export async function answerOf<Answer>(
  ask: () => Promise<Answer>,
  unavailable: (cause: unknown) => Error,
  withinMs = COMMAND_TIMEOUT_MS,
): Promise<Answer> {
  try {
    return await beforeDeadline(withinMs + HELD_BACK_MS, ask())
  } catch (error) {
    throw isRefusal(error) ? error : unavailable(error)
  }
}

/** One round trip to the views, or a few. Rejects with ReadModelUnavailableError if no answer comes in time. */
export function reach<Answer>(ask: () => Promise<Answer>, withinMs?: number): Promise<Answer> {
  return answerOf(ask, (cause) => new ReadModelUnavailableError('Redis is out of reach', { cause }), withinMs)
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && !CANNOT_NOW.test(error.message)
}

/** Every answer of a pipeline, in order; rejects with the first error among them. */
export async function answersOf(pipeline: ChainableCommander): Promise<unknown[]> {
  const answers = (await pipeline.exec()) ?? []
  return answers.map(([error, answer]) => {
    if (error !== null) throw error
    return answer
  })
}

/** Runs of no more than `most` items, so that no round trip is large. */
export function* runsOf<Item>(items: readonly Item[], most: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += most) yield items.slice(at, at + most)
}
