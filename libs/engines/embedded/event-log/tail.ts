import type { PartitionRange, StoredRecord } from '#libs/ports/event-log/event-log.js'

const MAX_BYTES = 8 << 20

/**
 * The records that were appended last, in memory. Consumers that keep up are given these same objects: none of them reads
 * the file, and what one has decoded the others need not decode again.
 */
export class Tail {
  private readonly byPartition = new Map<PartitionRange, StoredRecord[]>()
  /** What each `add` brought, oldest first. */
  private readonly added: { range: PartitionRange; count: number; bytes: number }[] = []
  private bytes = 0

  /** Only durable records may be added, those of a partition in order and without a gap. */
  add(range: PartitionRange, records: readonly StoredRecord[], bytes: number): void {
    const held = this.byPartition.get(range) ?? []
    held.push(...records)
    this.byPartition.set(range, held)
    this.added.push({ range, count: records.length, bytes })
    this.bytes += bytes
    while (this.bytes > MAX_BYTES) this.dropOldest()
  }

  /** The records from an offset on, up to a number of them; null if the offset is not in memory. */
  read(range: PartitionRange, from: number, maxItems: number): StoredRecord[] | null {
    const records = this.byPartition.get(range) ?? []
    const start = from - (records[0]?.offset ?? Infinity)
    return start < 0 ? null : records.slice(start, start + maxItems)
  }

  private dropOldest(): void {
    const oldest = this.added.shift()
    if (oldest === undefined) return
    this.bytes -= oldest.bytes
    this.byPartition.get(oldest.range)?.splice(0, oldest.count)
  }
}
