import type { ChainableCommander } from 'ioredis'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import { beforeDeadline } from '#libs/runtime/timing.js'

export const COMMAND_TIMEOUT_MS = 2_000
/** The timeout of commands with values as large as a mail, which use a connection of their own. */
export const BULK_TIMEOUT_MS = 60_000
/** Added to the timeout, because the client delays commands while it discovers the nodes of a Cluster. */
const DISCOVERY_MS = 500

/**
 * Errors of a Redis that can't serve the command now, and may later, in some cases after an operator has changed something.
 * Any other error means that the command is wrong.
 */
const UNAVAILABLE =
  /^(LOADING|OOM|BUSY|READONLY|MISCONF|NOREPLICAS|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|MOVED|ASK|NOAUTH|WRONGPASS|NOPERM)\b/

/**
 * Resolves with the answer of Redis. If there is none in time, or Redis can't serve the command now, rejects with the error
 * that `unavailable` creates from the cause. The command may have been executed, or may be executed later.
 */
export async function answerOf<Answer>(
  send: () => Promise<Answer>,
  unavailable: (cause: unknown) => Error,
  withinMs = COMMAND_TIMEOUT_MS,
): Promise<Answer> {
  try {
    return await beforeDeadline(withinMs + DISCOVERY_MS, send())
  } catch (error) {
    throw isWrongCommand(error) ? error : unavailable(error)
  }
}

/** Sends commands to the views. Rejects with ReadModelUnavailableError if Redis does not answer in time. */
export function reach<Answer>(send: () => Promise<Answer>, withinMs?: number): Promise<Answer> {
  return answerOf(send, (cause) => new ReadModelUnavailableError('Redis is unavailable', { cause }), withinMs)
}

/** Sends a command to the views for each item, all in one round trip. Otherwise as `reach`. */
export function reachAll<Item, Answer>(
  items: readonly Item[],
  send: (item: Item) => Promise<Answer>,
): Promise<Answer[]> {
  return reach(() => Promise.all(items.map((item) => send(item))))
}

function isWrongCommand(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' && !UNAVAILABLE.test(error.message)
}

/** Resolves with every answer of a pipeline, in order. Rejects with the first error among them. */
export async function answersOf(pipeline: ChainableCommander): Promise<unknown[]> {
  const answers = (await pipeline.exec()) ?? []
  return answers.map(([error, answer]) => {
    if (error !== null) throw error
    return answer
  })
}
