import {
  LogUnavailableError,
  MAX_NOTE_BYTES,
  NotAssignedError,
  partitionName,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type Partition,
  type Position,
} from './event-log.js'
import { PartitionLoop, type PartitionSource } from './partition-loop.js'

/** The engine's part in the consumer of one topic in one group. */
export interface GroupMembership {
  source(partition: number): PartitionSource
  /**
   * Commits offsets, all of them or none. `requireAssigned` throws NotAssignedError if one of the partitions has been
   * revoked, or assigned again, since the commit was requested.
   */
  commit(offsets: readonly CommittedOffset[], requireAssigned: () => void): Promise<void>
  /** Leaves the group and its partitions. Resolves once the group knows, or can't be reached. */
  leave(): Promise<void>
}

/** A consumer of one topic in one group, for all engines. It runs a loop for each partition that is assigned to it. */
export class GroupConsumer implements Consumer {
  readonly group: string
  readonly topic: ConsumerSpec['topic']
  private readonly loops = new Map<number, PartitionLoop>()
  /** For each partition, resolves when its last loop has ended. */
  private readonly ends = new Map<number, Promise<void>>()
  private readonly started = Promise.withResolvers<unknown>()
  private stopping: Promise<void> | null = null

  /** Resolves once the first partitions have their start positions; rejects if the consumer is stopped before. */
  readonly whenStarted: Promise<unknown> = this.started.promise

  constructor(
    private readonly spec: ConsumerSpec,
    private readonly membership: GroupMembership,
  ) {
    this.group = spec.group
    this.topic = spec.topic
    this.whenStarted.catch(() => undefined)
  }

  /**
   * Sets the assigned partitions. Another consumer may have had them in between: loops that start at the committed offset
   * missed nothing and continue, the others start again.
   */
  assign(partitions: readonly number[]): void {
    for (const [partition, loop] of [...this.loops]) {
      if (loop.hasOwnStart || !partitions.includes(partition)) this.revoke(partition)
    }
    if (this.stopping !== null) return
    for (const partition of partitions) {
      if (!this.loops.has(partition)) this.begin(partition)
    }
    void Promise.all([...this.loops.values()].map((loop) => loop.whenStarted)).then(this.started.resolve)
  }

  revokeAll(): void {
    for (const partition of [...this.loops.keys()]) this.revoke(partition)
  }

  positions(): Position[] {
    return [...this.loops.values()].flatMap(({ position }) => position ?? [])
  }

  restart(partition: number): void {
    this.loops.get(partition)?.restart()
  }

  async commit(offsets: readonly CommittedOffset[]): Promise<void> {
    refuseLongNotes(offsets)
    if (offsets.length === 0) return
    const loops = this.loopsOf(offsets)
    await this.membership.commit(offsets, () => {
      if (this.loopsOf(offsets).some((loop, index) => loop !== loops[index])) throw this.notAssigned(offsets)
    })
  }

  stop(): Promise<void> {
    this.stopping ??= this.stopOnce()
    return this.stopping
  }

  private async stopOnce(): Promise<void> {
    this.started.reject(new LogUnavailableError('the consumer was stopped before it had its partitions'))
    for (const loop of this.loops.values()) loop.end()
    // The consumer is still a member of the group, so the last batches can be committed.
    await Promise.all([...this.loops.values()].map((loop) => loop.whenEnded))
    await this.membership.leave()
    this.revokeAll()
    await Promise.all(this.ends.values())
  }

  private begin(partition: number): void {
    const { topic } = this
    const source = this.membership.source(partition)
    const loop = new PartitionLoop(this.spec, { topic, partition }, source, this.ends.get(partition))
    this.loops.set(partition, loop)
  }

  private revoke(partition: number): void {
    const loop = this.loops.get(partition)
    if (loop === undefined) return
    this.loops.delete(partition)
    loop.revoke()
    this.ends.set(partition, loop.whenEnded)
  }

  /** Throws NotAssignedError unless all are assigned to this consumer, with known start positions. */
  private loopsOf(offsets: readonly Partition[]): PartitionLoop[] {
    return offsets.map(({ topic, partition }) => {
      const loop = topic === this.topic ? this.loops.get(partition) : undefined
      if (loop === undefined || loop.position === null) throw this.notAssigned([{ topic, partition }])
      return loop
    })
  }

  private notAssigned(partitions: readonly Partition[]): NotAssignedError {
    const names = partitions.map(partitionName)
    return new NotAssignedError(
      `not, or no longer, assigned to this consumer of ${this.group}: ${names.join(', ')}`,
    )
  }
}

function refuseLongNotes(offsets: readonly CommittedOffset[]): void {
  for (const { topic, partition, note } of offsets) {
    const bytes = Buffer.byteLength(note)
    if (bytes <= MAX_NOTE_BYTES) continue
    throw new RangeError(
      `the note on ${topic}/${partition} has ${bytes} bytes, the limit is ${MAX_NOTE_BYTES}`,
    )
  }
}
