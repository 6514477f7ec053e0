import {
  NotAssignedError,
  type Consumer,
  type ConsumerSpec,
  type GroupPlace,
  type Position,
} from '#libs/ports/event-log/event-log.js'
import { refuseLongNotes } from '#libs/ports/event-log/note-size.js'
import { Stopping } from '#libs/ports/event-log/stopping.js'
import type { GroupPlaces } from './group-places.js'
import type { PartitionConsumer } from './partition-consumer.js'

/** All partitions of a topic: nobody else in the one process shares them. */
export class LmdbConsumer implements Consumer {
  private isStopped = false
  private readonly stopping = new Stopping((last) => this.stopAll(last))

  constructor(
    private readonly spec: Pick<ConsumerSpec, 'group' | 'topic'>,
    private readonly partitions: readonly PartitionConsumer[],
    private readonly places: GroupPlaces,
  ) {}

  start(): void {
    for (const partition of this.partitions) partition.start()
  }

  /** There may be more to read. */
  wake(): void {
    for (const partition of this.partitions) partition.wake()
  }

  positions(): Position[] {
    return this.isStopped ? [] : this.partitions.map(({ position }) => position)
  }

  locateAgain(partition: number): void {
    this.partitions.find(({ position }) => position.partition === partition)?.locateAgain()
  }

  async commit(places: readonly GroupPlace[]): Promise<void> {
    refuseLongNotes(places)
    const { group, topic } = this.spec
    const own = new Set(this.positions().map(({ partition }) => partition))
    const foreign = places.find((place) => place.topic !== topic || !own.has(place.partition))
    if (foreign !== undefined) {
      throw new NotAssignedError(
        `not, or no longer, of this consumer of ${group}: ${foreign.topic}/${foreign.partition}`,
      )
    }
    if (places.length > 0) await this.places.keep(group, places)
  }

  stop(last?: () => Promise<void>): Promise<void> {
    return this.stopping.stop(last)
  }

  private async stopAll(last: () => Promise<void>): Promise<void> {
    await Promise.all(this.partitions.map((partition) => partition.stop()))
    await last()
    this.isStopped = true
  }
}
