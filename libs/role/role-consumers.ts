import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'
import {
  NotAssignedError,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type LogConsumers,
  type Partition,
  type BatchOutcome,
  type RecordBatch,
} from '#libs/ports/event-log/event-log.js'
import type { SourceTopic } from '#libs/ports/event-log/topics.js'
import { beforeDeadline } from '#libs/runtime/timing/waiting.js'
import { Catch, type RpcExceptionFilter } from '@nestjs/common'
import { BaseRpcContext, Server, type CustomTransportStrategy } from '@nestjs/microservices'
import { lastValueFrom, throwError, type Observable } from 'rxjs'

export interface RoleConsumersOptions extends Pick<ConsumerSpec, 'startAt' | 'batchRecords'> {
  log: Pick<LogConsumers, 'consume'>
  /** The role's name; its instances share the partitions. */
  group: string
  logger: Logger
  registry: Registry
}

/** The consumers of one role, by topic. Their failures are logged and counted here. */
export class RoleConsumers {
  private readonly running = new Map<string, Consumer>()
  /** A consumer hands batches over before it is known here. */
  private readonly starting = new Map<string, Promise<Consumer>>()
  private readonly failures: Counter<'group' | 'topic'>

  constructor(private readonly options: RoleConsumersOptions) {
    this.failures = failuresCounter(options.registry)
  }

  /** Resolves once all have their start positions. If it rejects, it may be called again for those that are missing. */
  async start(topics: readonly SourceTopic[], handle: ConsumerSpec['handle']): Promise<void> {
    const { log, group, logger, registry: _, ...spec } = this.options
    for (const topic of topics) {
      if (this.running.has(topic)) continue
      // From zero on, so that the first failure shows as an increase.
      this.failures.inc({ group, topic }, 0)
      const starting = log.consume({
        ...spec,
        group,
        topic,
        handle,
        onError: (error, partition) => {
          this.failures.inc({ group, topic })
          logger.error({ err: error, ...partition }, 'a batch failed: tried again')
        },
      })
      this.starting.set(topic, starting)
      this.running.set(topic, await starting)
    }
  }

  /** As `Consumer.commit`. Waits until the topic's consumer has started: `startAt` must not wait for this. */
  async commit(topic: SourceTopic, offsets: readonly CommittedOffset[]): Promise<void> {
    // Without a pause if it has started: a partition that was assigned anew meanwhile would pass for the same.
    const consumer = this.running.get(topic) ?? (await this.starting.get(topic))
    if (consumer === undefined) throw new NotAssignedError(`nothing of ${topic} is consumed`)
    await consumer.commit(offsets)
  }

  /** Asks for a partition's start position again, if it is assigned to this instance. */
  restart({ topic, partition }: Partition): void {
    this.running.get(topic)?.restart(partition)
  }

  /** The offset behind all that was handled of a partition; null if it is not assigned to this instance. */
  handledTo({ topic, partition }: Partition): number | null {
    const positions = this.running.get(topic)?.positions() ?? []
    return positions.find((position) => position.partition === partition)?.offset ?? null
  }

  /**
   * Resolves once the batches under way are handled or given up. `beforeLeaving` is called for each topic as
   * `Consumer.stop` calls it; if it rejects, so does this, with everything stopped. Harmless to repeat.
   */
  async stop(beforeLeaving?: (topic: SourceTopic) => Promise<void>): Promise<void> {
    const stops = [...this.running].map(([topic, consumer]) =>
      consumer.stop(beforeLeaving && (() => beforeLeaving(topic as SourceTopic))),
    )
    await Promise.allSettled(stops)
    this.running.clear()
    this.starting.clear()
    await Promise.all(stops)
  }
}

const FAILURES = 'mayfly_consumer_failures_total'

/** One counter for all roles of a process. */
function failuresCounter(registry: Registry): Counter<'group' | 'topic'> {
  const known = registry.getSingleMetric(FAILURES)
  if (known instanceof Counter) return known
  return new Counter({
    name: FAILURES,
    help: 'Batches that could not be handled and were tried again.',
    labelNames: ['group', 'topic'],
    registers: [registry],
  })
}

/** A scrape does not wait longer for the log. */
const SCRAPE_WITHIN_MS = 2_000

/** Registers how far the consumers of this process are behind the log. */
export function measureLag(log: Pick<EventLog, 'consumers' | 'topology'>, registry: Registry): void {
  new Gauge({
    name: 'mayfly_consumer_lag_records',
    help: 'Records between what this process has handled of a partition that is its own and the end of the log.',
    labelNames: ['group', 'topic', 'partition'],
    registers: [registry],
    async collect() {
      this.reset()
      const byTopic = Map.groupBy(log.consumers, ({ topic }) => topic)
      await Promise.all(
        [...byTopic].map(async ([topic, consumers]) => {
          // Read before the topology: what has been handled lies before an end that is read later.
          const positions = consumers.flatMap((consumer) =>
            consumer.positions().map((position) => ({ ...position, group: consumer.group })),
          )
          // Nothing is known of a log that is out of reach; the other figures still are.
          const topology = await beforeDeadline(SCRAPE_WITHIN_MS, log.topology(topic)).catch(() => null)
          for (const { group, partition, offset } of positions) {
            const range = topology?.partitions.find((candidate) => candidate.partition === partition)
            if (range === undefined) continue
            // Records that retention has removed are no work any more.
            const behind = range.end - Math.max(offset, range.first)
            this.set({ group, topic, partition: String(partition) }, Math.max(behind, 0))
          }
        }),
      )
    },
  })
}

/** What a handler is given. */
export interface HandedBatch extends RecordBatch {
  /** Aborts when the handler should finish soon, or reject. */
  signal: AbortSignal
}

/**
 * Gives a Nest microservice batches of the event log: a method marked `@EventPattern(topic)` takes a HandedBatch and
 * resolves with its BatchOutcome. If it throws, the same records come again. Everything else that a role does with its
 * consumers it does with them, not through Nest.
 */
export class EventLogStrategy extends Server implements CustomTransportStrategy {
  override readonly propagatesEventHandlerErrors = true

  constructor(private readonly consumers: RoleConsumers) {
    super()
  }

  listen(callback: (error?: unknown) => void): void {
    const topics = [...this.messageHandlers.keys()] as SourceTopic[]
    this.consumers
      .start(topics, (batch, signal) => this.dispatch({ ...batch, signal }))
      .then(
        () => callback(),
        (error: unknown) => callback(error),
      )
  }

  close(): Promise<void> {
    return this.consumers.stop()
  }

  override on(): never {
    throw new Error('the event log has no events of its own')
  }

  override unwrap(): never {
    throw new Error('the event log is reached through its port')
  }

  private async dispatch(batch: HandedBatch): Promise<BatchOutcome> {
    const handler = this.messageHandlers.get(batch.topic)
    if (handler === undefined) throw new Error(`nothing handles ${batch.topic}`)
    const result: unknown = await handler(batch, new BaseRpcContext([]))
    const outcome: unknown = await lastValueFrom(this.transformToObservable(result))
    return outcome as BatchOutcome
  }
}

/** Passes errors on as they are: Nest's own filter would replace them by "Internal server error". */
@Catch()
export class PassErrorsOn implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error)
  }
}
