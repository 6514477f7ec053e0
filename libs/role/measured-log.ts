import { Counter, Gauge, type Registry } from 'prom-client'
import type {
  Consumer,
  ConsumerSpec,
  EventLog,
  GroupPlace,
  LogRecord,
  Partition,
  PartitionRange,
  Position,
  StoredRecord,
  Topology,
} from '#libs/ports/event-log/event-log.js'
import { beforeDeadline } from '#libs/runtime/timing/deadline.js'
import type { SourceTopic, TopicName } from '#libs/ports/event-log/topics.js'

/** Whoever scrapes does not wait for long. */
const LOOK_WITHIN_MS = 2_000

interface Followed {
  group: string
  topic: TopicName
  consumer: Consumer
}

/** A log that tells how far its consumers are behind it, and how often they fail. */
export class MeasuredLog implements EventLog {
  private readonly followed = new Set<Followed>()
  private readonly failures: Counter<'group' | 'topic'>

  constructor(
    private readonly log: EventLog,
    registry: Registry,
  ) {
    const measureLag = (lag: Gauge<'group' | 'topic' | 'partition'>) => this.measureLag(lag)
    new Gauge({
      name: 'mayfly_consumer_lag_records',
      help: 'Records between what this process has handled of a partition that is its own and the end of the log.',
      labelNames: ['group', 'topic', 'partition'],
      registers: [registry],
      async collect() {
        await measureLag(this)
      },
    })
    this.failures = new Counter({
      name: 'mayfly_consumer_failures_total',
      help: 'Batches that could not be handled and were tried again.',
      labelNames: ['group', 'topic'],
      registers: [registry],
    })
  }

  get logId(): string {
    return this.log.logId
  }

  async consume(spec: ConsumerSpec): Promise<Consumer> {
    const { group, topic } = spec
    // From zero on, so that the first one shows as an increase.
    this.failures.inc({ group, topic }, 0)
    const consumer = await this.log.consume({
      ...spec,
      onError: (error, partition) => {
        this.failures.inc({ group, topic })
        spec.onError(error, partition)
      },
    })
    const followed = { group, topic, consumer }
    this.followed.add(followed)
    return {
      positions: () => consumer.positions(),
      locateAgain: (partition) => consumer.locateAgain(partition),
      commit: (places) => consumer.commit(places),
      stop: (last) => consumer.stop(last).finally(() => this.followed.delete(followed)),
    }
  }

  append(topic: TopicName, record: LogRecord): Promise<Position> {
    return this.log.append(topic, record)
  }

  read(range: PartitionRange): AsyncIterable<StoredRecord[]> {
    return this.log.read(range)
  }

  topology(topic: TopicName): Promise<Topology> {
    return this.log.topology(topic)
  }

  committed(group: string, topic: SourceTopic): Promise<GroupPlace[]> {
    return this.log.committed(group, topic)
  }

  partitionCount(topic: TopicName): number {
    return this.log.partitionCount(topic)
  }

  setAside(batch: Partition, record: StoredRecord, reason: string): Promise<void> {
    return this.log.setAside(batch, record, reason)
  }

  close(): Promise<void> {
    return this.log.close()
  }

  /** Of a log that is out of reach it says nothing: the other figures are still to be had. */
  private async measureLag(lag: Gauge<'group' | 'topic' | 'partition'>): Promise<void> {
    lag.reset()
    const byTopic = Map.groupBy(this.followed, ({ topic }) => topic)
    await Promise.all(
      [...byTopic].map(async ([topic, followed]) => {
        // Asked before the log: what has been handled lies before an end that is told later.
        const positions = followed.flatMap(({ group, consumer }) =>
          consumer.positions().map((position) => ({ group, ...position })),
        )
        const topology = await beforeDeadline(LOOK_WITHIN_MS, this.log.topology(topic)).catch(() => null)
        for (const { group, partition, offset } of positions) {
          const range = topology?.partitions.find((candidate) => candidate.partition === partition)
          if (range !== undefined) {
            // What retention has removed is nobody's work any more.
            const behind = range.end - Math.max(offset, range.first)
            lag.set({ group, topic, partition: String(partition) }, Math.max(behind, 0))
          }
        }
      }),
    )
  }
}
