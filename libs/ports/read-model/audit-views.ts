import type { AuditLog } from '#libs/domain/audit/audit-log.js'
import { fold, hashOfLeaf, TILE_HEIGHT, type Subtree } from '#libs/domain/audit/tree.js'
import type { EventId, LogId } from '#libs/domain/ids/typeid.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { rowOf, type LeaseQuery, type OffsetQuery } from './lists.js'
import * as tables from './tables.js'
import type { Range, ViewStore } from './view-store.js'

/** Hashes of a log's tree, from the one at `from` up to the one at `to` of a level of tiles (C2SP tlog-tiles). */
export interface HashRange {
  level: number
  from: number
  to: number
}

/** Queries of audit logs (audit-leaves). */
export function auditViews(store: ViewStore) {
  const rangeOf = (
    logId: LogId,
    group: readonly string[],
    { from, to }: Omit<HashRange, 'level'>,
  ): Range => ({
    ...{ partition: partitionOf(logId, store.partitions), group: [logId, ...group] },
    ...{ from, to, order: 'asc', limit: to - from },
  })

  /** Fewer than a range asks for only if the tree does not have them. */
  async function hashes(logId: LogId, ranges: readonly HashRange[]): Promise<Buffer[][]> {
    const [lowest, higher] = [
      ranges.filter(({ level }) => level === 0),
      ranges.filter(({ level }) => level > 0),
    ]
    const [ofLeaves, ofSubtrees] = await Promise.all([
      store.entries(
        tables.leafOrder,
        lowest.map((range) => rangeOf(logId, [], range)),
      ),
      store.entries(
        tables.subtreeOrder,
        higher.map((range) => rangeOf(logId, [String(range.level)], range)),
      ),
    ])
    return ranges.map((range) =>
      range.level === 0
        ? (ofLeaves[lowest.indexOf(range)] ?? []).map(({ value }) => hashOfLeaf(value))
        : (ofSubtrees[higher.indexOf(range)] ?? []).map(({ value }) => Buffer.from(value, 'base64')),
    )
  }

  return {
    log: (id: LogId): Promise<AuditLog | null> => rowOf(store, tables.auditLogs, { owner: null, key: id }),

    /** The JSON of leaves, by their index. Fewer than the limit only if the range has no more. */
    async leaves(
      logId: LogId,
      { order, limit, ...range }: OffsetQuery,
    ): Promise<{ index: number; text: string }[]> {
      const [found = []] = await store.entries(tables.leafOrder, [
        { ...rangeOf(logId, [], range), order, limit },
      ])
      return found.map(({ sort, value }) => ({ index: Number(sort), text: value }))
    },

    /** The index of the first leaf of an event; null if there is none. */
    async leafOf(logId: LogId, eventId: EventId): Promise<number | null> {
      const range = { ...rangeOf(logId, [eventId], { from: 0, to: 1 }), to: null }
      const [found] = await store.entries(tables.leafIds, [range])
      const [first] = found ?? []
      return first === undefined ? null : Number(first.sort)
    },

    /** The size of the last checkpoint that was taken at that time or before; null if there is none. */
    async sizeAt(logId: LogId, time: Date): Promise<number | null> {
      const range = { ...rangeOf(logId, [], { from: 0, to: 1 }), to: Math.max(time.getTime() + 1, 0) }
      const [found = []] = await store.entries(tables.checkpointTimes, [{ ...range, order: 'desc' }])
      const [last] = found
      return last === undefined ? null : Number(last.key)
    },

    hashes,

    /** The hashes of full subtrees. Two round trips. */
    async subtreeHashes(logId: LogId, subtrees: readonly Subtree[]): Promise<Buffer[]> {
      const ranges = subtrees.map(({ height, index }) => {
        const level = Math.floor(height / TILE_HEIGHT)
        const width = 2 ** (height % TILE_HEIGHT)
        return { level, from: index * width, to: (index + 1) * width }
      })
      return (await hashes(logId, ranges)).map(fold)
    },

    /** Leases logs that are due for a checkpoint. */
    async leaseDue({ now, leaseMs, limit }: LeaseQuery): Promise<AuditLog[]> {
      const nowMs = now.getTime()
      const due = await store.due(tables.dueCheckpoints, nowMs, limit)
      const partitions = [...new Set(due.map(({ partition }) => partition))]
      const claimed = await Promise.all(
        partitions.map((partition) => {
          const claim = { partition, group: [], nowMs, untilMs: nowMs + leaseMs, limit }
          return store.claim(tables.dueCheckpoints, tables.auditLogs, claim)
        }),
      )
      return claimed.flat().flatMap(({ row }) => row ?? [])
    },
  }
}
