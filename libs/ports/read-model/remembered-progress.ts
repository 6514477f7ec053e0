import { partitionName, type LogLayout, type Partition } from '#libs/ports/event-log/event-log.js'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import { SharedRun } from '#libs/runtime/timing.js'
import type { Progress, ViewProgress } from './view-store.js'

/** The offset that a partition's views must reach, and their `begunAtMs` at that offset; null if it is the log's end. */
interface Reached {
  position: number
  begunAtMs: number | null
}

const READS_APART_MS = 250

/**
 * The progress of the views of one log. Views of another log count as never begun, even before a projector notices them.
 *
 * The highest position of each partition's views is remembered, so that views that are restored from an older copy count
 * as catching up until they reach it again. Positions that only other processes have seen are covered by the log's end,
 * which is read after every `invalidate`. If views have been begun since, only their own target counts: the log may have
 * been truncated.
 */
export function rememberProgress(queries: ViewProgress, log: LogLayout) {
  const reached = new Map<string, Reached>()
  let invalidations = 0
  let settledInvalidations = 0
  const settling = new SharedRun(settle, READS_APART_MS)

  async function settle(): Promise<void> {
    const settled = invalidations
    for (const topic of VIEWED_TOPICS) {
      const { partitions } = await log.topology(topic)
      for (const { partition, end } of partitions) {
        const name = partitionName({ topic, partition })
        const { position, begunAtMs } = reached.get(name) ?? { position: 0, begunAtMs: null }
        reached.set(name, { position: Math.max(position, end), begunAtMs })
      }
    }
    settledInvalidations = settled
  }

  async function isInvalid(): Promise<boolean> {
    // While the log is unavailable, the views stay invalid.
    if (settledInvalidations < invalidations) await settling.get().catch(() => undefined)
    return settledInvalidations < invalidations
  }

  async function progress(partition: Partition): Promise<Progress | null> {
    const now = await queries.progress(partition)
    if (now?.logId !== log.logId) return null
    // Checked after the read: `invalidate` is called before the store returns older data.
    if (await isInvalid()) return { ...now, target: Math.max(now.target, now.position + 1) }
    const name = partitionName(partition)
    const { position, begunAtMs } = reached.get(name) ?? now
    const isBegunSince = begunAtMs !== null && now.begunAtMs > begunAtMs
    if (isBegunSince || now.position >= position) {
      reached.set(name, { position: now.position, begunAtMs: Math.max(now.begunAtMs, begunAtMs ?? 0) })
      return now
    }
    reached.set(name, { position, begunAtMs: begunAtMs ?? now.begunAtMs })
    return { ...now, target: Math.max(now.target, position) }
  }

  return {
    progress,

    /**
     * Must be called when the views may have been set back, for example to an older copy. A partition then counts as
     * catching up until it has reached the end that the log has after this call, or while the log is unavailable.
     */
    invalidate: (): void => void (invalidations += 1),
  }
}
