import type { EventLog, Partition } from '#libs/event-log/event-log.js'
import { SharedRun } from '#libs/event-log/shared-run.js'
import { SOURCE_TOPICS } from '#libs/event-log/topics.js'
import { movedChannel } from './watermark.js'
import type { InboxQueries, Progress } from './queries.js'

export interface Remembering<Queries> {
  queries: Queries
  /**
   * To be called when the views may have gone back: until each partition is seen where the log ends after this, it
   * counts as catching up, and so does every one while the log can't be asked.
   */
  doubt: () => void
}

const ASKED_APART_MS = 250

/**
 * The same queries, whose progress remembers how far each partition's views were seen to be: put back from an
 * older copy, they count as catching up until they are there again, whoever notices it when. What other processes
 * alone have seen of them, the log knows: it is asked after every doubt.
 */
export function rememberingProgress<Queries extends Pick<InboxQueries, 'progress'>>(
  queries: Queries,
  log: Pick<EventLog, 'topology'>,
): Remembering<Queries> {
  const farthest = new Map<string, number>()
  let doubts = 0
  let doubtsSettled = 0
  const settling = new SharedRun(settle, ASKED_APART_MS)

  function remember(partition: Partition, position: number): number {
    const name = movedChannel(partition)
    const seen = Math.max(farthest.get(name) ?? 0, position)
    farthest.set(name, seen)
    return seen
  }

  async function settle(): Promise<void> {
    const raised = doubts
    for (const topic of SOURCE_TOPICS) {
      const { partitions } = await log.topology(topic)
      for (const { partition, end } of partitions) remember({ topic, partition }, end)
    }
    doubtsSettled = raised
  }

  async function isInDoubt(): Promise<boolean> {
    // A log that can't be asked leaves the doubt as it is.
    if (doubtsSettled < doubts) await settling.get().catch(() => undefined)
    return doubtsSettled < doubts
  }

  async function progress(partition: Partition): Promise<Progress | null> {
    const now = await queries.progress(partition)
    if (now === null) return null
    // Behind the look: what raises a doubt comes before an answer that is to be doubted.
    const leastTarget = (await isInDoubt()) ? now.position + 1 : 0
    const seen = remember(partition, now.position)
    return { ...now, target: Math.max(now.target, leastTarget, now.position < seen ? seen : 0) }
  }

  return {
    // Everything else is answered by the queries themselves, which stand behind as the prototype.
    queries: Object.create(queries, { progress: { value: progress } }) as Queries,
    doubt: () => (doubts += 1),
  }
}
