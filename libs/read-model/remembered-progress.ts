import type { Partition } from '#libs/event-log/event-log.js'
import type { InboxQueries, Progress } from './queries.js'
import { movedChannel } from './watermark.js'

/**
 * The progress of views, remembering how far each partition's were seen to be: put back from an older copy they count
 * as catching up until they are there again, whoever notices it when. Where views have been begun since, their target
 * says what they lack, and nothing is remembered: their log may have lost its end.
 */
export function rememberingProgress(queries: Pick<InboxQueries, 'progress'>): InboxQueries['progress'] {
  const farthest = new Map<string, { begunAtMs: number; position: number }>()

  return async (partition: Partition): Promise<Progress | null> => {
    const now = await queries.progress(partition)
    if (now === null) return null
    const name = movedChannel(partition)
    const seen = farthest.get(name) ?? now
    if (now.begunAtMs > seen.begunAtMs || now.position >= seen.position) {
      farthest.set(name, { begunAtMs: Math.max(now.begunAtMs, seen.begunAtMs), position: now.position })
      return now
    }
    return { ...now, target: Math.max(now.target, seen.position) }
  }
}
