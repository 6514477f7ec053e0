import type { Partition } from '#libs/event-log/event-log.js'
import { movedChannel } from './watermark.js'
import type { InboxQueries, Progress } from './queries.js'

/**
 * The same queries, whose progress remembers how far each partition's views were seen to be: put back from an
 * older copy, they count as catching up until they are there again, whoever notices it when.
 */
export function rememberingProgress<Queries extends Pick<InboxQueries, 'progress'>>(
  queries: Queries,
): Queries {
  const farthest = new Map<string, number>()

  async function progress(partition: Partition): Promise<Progress | null> {
    const now = await queries.progress(partition)
    if (now === null) return null
    const name = movedChannel(partition)
    const seen = Math.max(farthest.get(name) ?? 0, now.position)
    farthest.set(name, seen)
    return { ...now, target: Math.max(now.target, now.position < seen ? seen : 0) }
  }

  // Everything else is answered by the queries themselves, which stand behind as the prototype.
  return Object.create(queries, { progress: { value: progress } }) as Queries
}
