import { Catch, Module, type INestMicroservice, type RpcExceptionFilter, type Type } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import {
  BaseRpcContext,
  Server,
  type CustomStrategy,
  type CustomTransportStrategy,
} from '@nestjs/microservices'
import type { Logger } from 'pino'
import { Gauge, type Counter, type Registry } from 'prom-client'
import { lastValueFrom, throwError, type Observable } from 'rxjs'
import {
  NotAssignedError,
  type BatchOutcome,
  type CommittedOffset,
  type Consumer,
  type ConsumerSpec,
  type EventLog,
  type LogConsumers,
  type Partition,
  type RecordBatch,
} from '#libs/ports/event-log/event-log.js'
import type { SourceTopic } from '#libs/ports/event-log/topics.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { beforeDeadline } from '#libs/runtime/timing.js'

export interface RoleConsumersOptions extends Pick<ConsumerSpec, 'startAt' | 'batchRecords' | 'lingerMs'> {
  log: Pick<LogConsumers, 'consume'>
  /** The role's name. Instances of a role share the partitions. */
  group: string
  logger: Logger
  registry: Registry
}

/**
 * The event log as a transport of Nest: consumers of the topics that the role's controller has methods for, which get
 * their batches. Logs and counts failures.
 */
export class RoleConsumers extends Server implements CustomTransportStrategy {
  override readonly propagatesEventHandlerErrors = true
  private readonly running = new Map<string, Consumer>()
  /** A consumer may deliver its first batch before `consume` has resolved. */
  private readonly starting = new Map<string, Promise<Consumer>>()
  private readonly failures: Counter<'group' | 'topic'>

  constructor(private readonly options: RoleConsumersOptions) {
    super()
    this.failures = new Metrics(options.registry).counter(
      'mayfly_consumer_failures_total',
      'Batches that failed and were retried.',
      ['group', 'topic'],
    )
  }

  /** Calls back once every consumer has its start offsets. After an error, it can be called again. */
  listen(callback: (error?: unknown) => void): void {
    this.start().then(
      () => callback(),
      (error: unknown) => callback(error),
    )
  }

  private async start(): Promise<void> {
    const { log, group, logger: roleLogger, registry: _, ...spec } = this.options
    for (const topic of this.messageHandlers.keys() as Iterable<SourceTopic>) {
      if (this.running.has(topic)) continue
      // Start at zero, so that the first failure shows as an increase.
      this.failures.inc({ group, topic }, 0)
      const starting = log.consume({
        ...spec,
        group,
        topic,
        handle: (batch, signal) => this.dispatch({ ...batch, signal }),
        onError: (error, partition) => {
          this.failures.inc({ group, topic })
          roleLogger.error({ err: error, ...partition }, 'a batch failed: retrying')
        },
      })
      this.starting.set(topic, starting)
      this.running.set(topic, await starting)
    }
  }

  /** As `Consumer.commit`. Waits until the topic's consumer has started, so `startAt` must not wait for this. */
  async commit(topic: SourceTopic, offsets: readonly CommittedOffset[]): Promise<void> {
    // Don't await a running consumer: a partition that is reassigned meanwhile would look unchanged.
    const consumer = this.running.get(topic) ?? (await this.starting.get(topic))
    if (consumer === undefined) throw new NotAssignedError(`nothing of ${topic} is consumed`)
    await consumer.commit(offsets)
  }

  /** Calls `startAt` again for a partition, if the partition is assigned to this instance. */
  restart({ topic, partition }: Partition): void {
    this.running.get(topic)?.restart(partition)
  }

  /** The offset after the last handled record of a partition; null if it is not assigned to this instance. */
  handledTo({ topic, partition }: Partition): number | null {
    const positions = this.running.get(topic)?.positions() ?? []
    return positions.find((position) => position.partition === partition)?.offset ?? null
  }

  /** Resolves once the batches in progress are handled or abandoned. Can be repeated. */
  async close(): Promise<void> {
    await Promise.all([...this.running.values()].map((consumer) => consumer.stop()))
    this.running.clear()
    this.starting.clear()
  }

  override on(): never {
    throw new Error('the event log emits no events')
  }

  override unwrap(): never {
    throw new Error('the event log is used through its port')
  }

  private async dispatch(batch: ConsumedBatch): Promise<BatchOutcome> {
    const handler = this.messageHandlers.get(batch.topic)
    if (handler === undefined) throw new Error(`no handler for ${batch.topic}`)
    const result: unknown = await handler(batch, new BaseRpcContext([]))
    const outcome: unknown = await lastValueFrom(this.transformToObservable(result))
    return outcome as BatchOutcome
  }
}

export interface ConsumedBatch extends RecordBatch {
  /** Aborts when the handler should finish soon, or reject. */
  signal: AbortSignal
}

@Module({})
class RoleModule {}

/** The token of what a role's controller is constructed with. */
export const PORTS = Symbol('ports')

/**
 * Creates a Nest microservice with one controller, which is constructed with `ports`. A method marked
 * `@EventPattern(topic)` gets each ConsumedBatch of the topic and resolves with its BatchOutcome; if it throws, the
 * same records come again. `listen` starts the consumers and `close` stops them.
 */
export function createRoleService<Ports>(
  consumers: RoleConsumers,
  controller: Type & (new (ports: Ports) => object),
  ports: NoInfer<Ports>,
): Promise<INestMicroservice> {
  const module = {
    module: RoleModule,
    controllers: [controller],
    providers: [{ provide: PORTS, useValue: ports }],
  }
  return NestFactory.createMicroservice<CustomStrategy>(module, {
    strategy: consumers,
    logger: false,
    abortOnError: false,
  })
}

/** Rethrows a controller's errors unchanged: Nest's default filter replaces them by "Internal server error". */
@Catch()
export class RethrowErrors implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error)
  }
}

const SCRAPE_TIMEOUT_MS = 2_000

/** Registers a gauge of how far the consumers of this process lag behind the log. */
export function measureLag(log: Pick<EventLog, 'consumers' | 'topology'>, registry: Registry): void {
  new Gauge({
    name: 'mayfly_consumer_lag_records',
    help: 'Records from what this process has handled of an assigned partition to the end of the log.',
    labelNames: ['group', 'topic', 'partition'],
    registers: [registry],
    async collect() {
      this.reset()
      const byTopic = Map.groupBy(log.consumers, ({ topic }) => topic)
      await Promise.all(
        [...byTopic].map(async ([topic, consumers]) => {
          // Read the positions before the topology, so that no position is past the end.
          const positions = consumers.flatMap((consumer) =>
            consumer.positions().map((position) => ({ ...position, group: consumer.group })),
          )
          // If the log is unavailable, report no lag; the other metrics are still served.
          const topology = await beforeDeadline(SCRAPE_TIMEOUT_MS, log.topology(topic)).catch(() => null)
          for (const { group, partition, offset } of positions) {
            const range = topology?.partitions.find((candidate) => candidate.partition === partition)
            if (range === undefined) continue
            // Records that retention has removed don't count.
            const lag = range.end - Math.max(offset, range.first)
            this.set({ group, topic, partition: String(partition) }, Math.max(lag, 0))
          }
        }),
      )
    },
  })
}
