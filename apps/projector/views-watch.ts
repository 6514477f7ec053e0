import { partitionName, type LogLayout, type Partition } from '#libs/ports/event-log/event-log.js'
import { VIEWED_TOPICS } from '#libs/ports/event-log/topics.js'
import type { ViewProgress } from '#libs/ports/read-model/view-store.js'
import type { RoleConsumers } from '#libs/role/role-consumers.js'
import { PeriodicTask } from '#libs/runtime/timing.js'

export interface ViewsWatchOptions {
  log: Pick<LogLayout, 'partitionCount'>
  queries: ViewProgress
  consumers: Pick<RoleConsumers, 'handledTo' | 'restart'>
  onLost: (partition: Partition) => void
  onError: (error: unknown) => void
}

const CHECK_EVERY_MS = 1_000

/**
 * Detects views that were emptied or restored from an older copy, even if no event comes, and restarts their partition,
 * which rebuilds them.
 */
export function watchViews({ log, queries, consumers, onLost, onError }: ViewsWatchOptions): PeriodicTask {
  /** The position of each partition at the last check; null if it had none. */
  const positions = new Map<string, number | null>()

  const checkPartition = async (partition: Partition) => {
    const name = partitionName(partition)
    const last = positions.get(name)
    // Since the last check the views may have advanced and been restored to the same position.
    const before = last === null ? null : Math.max(last ?? 0, consumers.handledTo(partition) ?? 0)
    const position = (await queries.progress(partition))?.position ?? null
    positions.set(name, position)
    if (position !== null && position >= (before ?? 0)) return
    if (before !== null) onLost(partition)
    consumers.restart(partition)
  }
  const check = async () => {
    for (const topic of VIEWED_TOPICS) {
      const length = log.partitionCount(topic)
      await Promise.all(Array.from({ length }, (_, partition) => checkPartition({ topic, partition })))
    }
  }
  const work = () => check().catch(onError)
  return new PeriodicTask({ everyMs: CHECK_EVERY_MS, firstAfterMs: CHECK_EVERY_MS, work })
}
