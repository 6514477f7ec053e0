import type { Kafka } from 'kafkajs'
import {
  LogUnavailableError,
  NotAssignedError,
  type Consumer,
  type ConsumerSpec,
  type GroupPlace,
  type Partition,
  type PartitionRange,
  type Position,
} from '#libs/ports/event-log/event-log.js'
import { refuseLongNotes } from '#libs/ports/event-log/note-size.js'
import { Stopping } from '#libs/ports/event-log/stopping.js'
import { SharedRun } from '#libs/runtime/timing/shared-run.js'
import { GroupMember } from './group-member.js'
import type { KafkaCluster } from './kafka-cluster.js'
import { PartitionFetcher } from './partition-fetcher.js'
import { PartitionRun, type PartitionPlace } from './partition-run.js'
import { ANSWER_WITHIN_MS, LOOKUPS_APART_MS } from './kafka-client.js'
import { within } from './within.js'

export interface KafkaConsumerOptions {
  spec: ConsumerSpec
  /** As the brokers know them. */
  groupId: string
  topic: string
  kafka: () => Kafka
  /** Of this consumer alone: a request that waits for records holds up all others on its connection. */
  cluster: KafkaCluster
  ranges: () => Promise<PartitionRange[]>
  /** The group's offsets by partition. */
  committed: () => Promise<ReadonlyMap<number, number>>
  onError: (error: unknown, during: string) => void
}

/** Hands a group's share of a topic to its handler, each partition by itself. */
export class KafkaConsumer implements Consumer {
  private readonly member: GroupMember
  private readonly fetcher: PartitionFetcher
  private readonly place: PartitionPlace
  private readonly runs = new Map<number, PartitionRun>()
  /** Ends of the last run of each partition. */
  private readonly ends = new Map<number, Promise<void>>()
  private readonly begun = Promise.withResolvers<undefined>()
  private memberId = ''
  private readonly stopping = new Stopping((last) => this.stopAll(last))

  constructor(private readonly options: KafkaConsumerOptions) {
    const { groupId, topic, kafka, cluster, onError } = options
    const committed = new SharedRun(options.committed, LOOKUPS_APART_MS)
    this.fetcher = new PartitionFetcher(cluster, topic, (error) => onError(error, `fetching of ${topic}`))
    this.member = new GroupMember({
      kafka,
      groupId,
      topic,
      onAssigned: (partitions, memberId) => this.assign(partitions, memberId),
      onLost: () => this.revokeAll(),
      onMissed: () => this.giveAnew(),
      onError: (error) => onError(error, `membership in the group ${groupId}`),
    })
    this.place = {
      range: async (partition) => {
        const range = (await options.ranges()).find((candidate) => candidate.partition === partition)
        if (range === undefined) throw new RangeError(`${topic} has no partition ${partition}`)
        return range
      },
      committed: async (partition) => (await committed.get()).get(partition) ?? null,
      commit: (partition, offset) => this.member.commit(partition, offset),
    }
    this.begun.promise.catch(() => undefined)
  }

  /** Resolves once the partitions of the first assignment have been asked for their start positions. */
  async start(): Promise<void> {
    const { cluster, topic } = this.options
    await within(
      ANSWER_WITHIN_MS,
      `Kafka could not be asked for the leaders of ${topic}`,
      cluster.know(topic),
    )
    if (!this.stopping.hasBegun) this.member.start()
    await this.begun.promise
  }

  positions(): Position[] {
    const { topic } = this.options.spec
    return [...this.runs.values()]
      .filter(({ isLocated }) => isLocated)
      .map(({ partition, offset }) => ({ topic, partition, offset }))
  }

  locateAgain(partition: number): void {
    this.runs.get(partition)?.locateAgain()
  }

  async commit(places: readonly GroupPlace[]): Promise<void> {
    refuseLongNotes(places)
    if (places.length === 0) return
    const runs = this.runsOf(places)
    const what = `Kafka could not be told the places of ${this.options.groupId}`
    const membership = await within(ANSWER_WITHIN_MS, what, this.member.membership)
    // Nothing of what was gathered before a partition was given anew may become its place.
    if (this.runsOf(places).some((run, index) => run !== runs[index])) throw this.lost(places)
    await within(ANSWER_WITHIN_MS, what, this.member.commitAs(membership, places))
  }

  stop(last?: () => Promise<void>): Promise<void> {
    return this.stopping.stop(last)
  }

  private async stopAll(last: () => Promise<void>): Promise<void> {
    this.begun.reject(new LogUnavailableError('the consumer was stopped before it had its partitions'))
    for (const run of this.runs.values()) run.end()
    // The membership goes on until then: heartbeats while the last batches are handled, and their commits.
    await Promise.all([...this.runs.values()].map((run) => run.settled))
    await last()
    await this.member.stop()
    await Promise.all(this.ends.values())
    await this.fetcher.stop()
  }

  private assign(partitions: readonly number[], memberId: string): void {
    // A member under a new name has been out of the group, and what it had may have been another's.
    if (memberId !== this.memberId) this.revokeAll()
    this.memberId = memberId
    for (const partition of [...this.runs.keys()]) {
      if (!partitions.includes(partition)) this.revoke(partition)
    }
    if (this.stopping.hasBegun) return
    for (const partition of partitions) {
      if (!this.runs.has(partition)) this.begin(partition)
    }
    Promise.all([...this.runs.values()].map((run) => run.settled)).then(
      () => this.begun.resolve(undefined),
      this.begun.reject,
    )
  }

  /** What begins where the group's place says has lost nothing by another's having had it; the rest begins again. */
  private giveAnew(): void {
    for (const { partition, hasOwnStart } of [...this.runs.values()]) {
      if (!hasOwnStart) continue
      this.revoke(partition)
      if (!this.stopping.hasBegun) this.begin(partition)
    }
  }

  /**
   * Throws if not all are this consumer's now. One whose start has not been told yet is not: what the consumer knows
   * of it is from before another may have had it.
   */
  private runsOf(places: readonly GroupPlace[]): PartitionRun[] {
    return places.map(({ topic, partition }) => {
      const run = topic === this.options.spec.topic ? this.runs.get(partition) : undefined
      if (run?.isLocated !== true) throw this.lost([{ topic, partition }])
      return run
    })
  }

  private lost(places: readonly Partition[]): NotAssignedError {
    const names = places.map(({ topic, partition }) => `${topic}/${partition}`)
    return new NotAssignedError(
      `not, or no longer, of this consumer of ${this.options.groupId}: ${names.join(', ')}`,
    )
  }

  private begin(partition: number): void {
    const previous = this.ends.get(partition) ?? Promise.resolve()
    this.runs.set(
      partition,
      new PartitionRun(this.options.spec, partition, this.place, this.fetcher, previous),
    )
  }

  private revokeAll(): void {
    for (const partition of [...this.runs.keys()]) this.revoke(partition)
  }

  private revoke(partition: number): void {
    const run = this.runs.get(partition)
    if (run === undefined) return
    this.runs.delete(partition)
    run.revoke()
    this.ends.set(partition, run.settled)
  }
}
