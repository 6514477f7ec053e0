import { setTimeout as pause } from 'node:timers/promises'

/** What brokers answer for a while after a topic was made or a broker lost: not all have heard of it yet. */
const SETTLING = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'NOT_CONTROLLER',
])
const AGAIN_AFTER_MS = 100
const MOST_CAUSES = 5

/** Does what can be repeated until brokers agree on what there is; past the time it rejects with what they say. */
export async function onceSettled<Result>(withinMs: number, work: () => Promise<Result>): Promise<Result> {
  const deadline = Date.now() + withinMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isSettling(error) || Date.now() > deadline) throw error
    }
    await pause(AGAIN_AFTER_MS)
  }
}

/** Whether it, or what it came from, says that brokers do not agree yet. */
export function isSettling(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth < MOST_CAUSES && typeof cause === 'object' && cause !== null; depth += 1) {
    if ('type' in cause && typeof cause.type === 'string' && SETTLING.has(cause.type)) return true
    cause = 'cause' in cause ? cause.cause : undefined
  }
  return false
}
