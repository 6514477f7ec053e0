import type { Partition, PartitionRange, LogLayout } from '#libs/ports/event-log/event-log.js'
import type { ProjectionStore } from './projection-store.js'

/** Makes a partition's views ready to follow the log; resolves with its range and the offset to go on from. */
export async function beginViews(
  store: Pick<ProjectionStore, 'begin'>,
  log: LogLayout,
  { topic, partition }: Partition,
): Promise<{ range: PartitionRange; offset: number }> {
  let aheadAt: number | undefined
  for (;;) {
    const { logId, partitions } = await log.topology(topic)
    const range = partitions.find((candidate) => candidate.partition === partition)
    if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
    const begun = await store.begin(logId, range, aheadAt)
    if (typeof begun === 'number') return { range, offset: begun }
    aheadAt = begun.aheadAt
  }
}
