import type { Partition, LogLayout } from '#libs/ports/event-log/event-log.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { movedChannel } from './consistent-views.js'
import type { InboxQueries, Progress } from './queries.js'

export interface RememberedProgress {
  progress: InboxQueries['progress']
  /**
   * To be called when the views may have gone back: until each partition is seen where the log ends after this, it
   * counts as catching up, and so does every one while the log can't be asked.
   */
  doubt: () => void
}

/** The offset that a partition's views must reach, and the beginning that it was seen of; null if the log said so. */
interface Reached {
  position: number
  begunAtMs: number | null
}

const ASKED_APART_MS = 250

/**
 * The progress of the views of one log: views of another log count as not begun, even before a projector notices them.
 *
 * It remembers how far each partition's views were seen to be. Views restored from an older copy count as catching up
 * until they are there again. What only other processes have seen is taken from the log, which is asked after every
 * doubt. If views have been begun since, their target says what they lack, and nothing is remembered: their log may have
 * lost its end.
 */
export function rememberProgress(
  queries: Pick<InboxQueries, 'progress'>,
  log: LogLayout,
): RememberedProgress {
  const reached = new Map<string, Reached>()
  let doubts = 0
  let doubtsSettled = 0
  const settling = new SharedRun(settle, ASKED_APART_MS)

  async function settle(): Promise<void> {
    const raised = doubts
    for (const topic of VIEWED_TOPICS) {
      const { partitions } = await log.topology(topic)
      for (const { partition, end } of partitions) {
        const name = movedChannel({ topic, partition })
        const { position, begunAtMs } = reached.get(name) ?? { position: 0, begunAtMs: null }
        reached.set(name, { position: Math.max(position, end), begunAtMs })
      }
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
    if (now?.logId !== log.logId) return null
    // Behind the look: what raises a doubt comes before an answer that is to be doubted.
    if (await isInDoubt()) return { ...now, target: Math.max(now.target, now.position + 1) }
    const name = movedChannel(partition)
    const { position, begunAtMs } = reached.get(name) ?? now
    const isBegunSince = begunAtMs !== null && now.begunAtMs > begunAtMs
    if (isBegunSince || now.position >= position) {
      reached.set(name, { position: now.position, begunAtMs: Math.max(now.begunAtMs, begunAtMs ?? 0) })
      return now
    }
    reached.set(name, { position, begunAtMs: begunAtMs ?? now.begunAtMs })
    return { ...now, target: Math.max(now.target, position) }
  }

  return { progress, doubt: () => (doubts += 1) }
}
