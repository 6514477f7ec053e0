import { Catch, type RpcExceptionFilter } from '@nestjs/common'
import { BaseRpcContext, Server, type CustomTransportStrategy } from '@nestjs/microservices'
import { lastValueFrom, throwError, type Observable } from 'rxjs'
import {
  NotAssignedError,
  type BatchOutcome,
  type Consumer,
  type EventLog,
  type GroupPlace,
  type Partition,
  type PartitionRange,
  type RecordBatch,
  type StartPosition,
} from '#libs/ports/event-log/event-log.js'
import type { SourceTopic } from '#libs/ports/event-log/topics.js'

export interface EventLogStrategyOptions {
  log: Pick<EventLog, 'consume'>
  /** The role's name; its instances share the partitions. */
  group: string
  /** As the log's consumers have it. */
  batchRecords?: number
  startAt: (range: PartitionRange) => Promise<StartPosition>
  onError: (error: unknown, partition: Partition) => void
}

/** What a handler is given. */
export interface HandedBatch extends RecordBatch {
  /** Tells the handler to hurry. */
  signal: AbortSignal
}

/**
 * Gives a Nest microservice batches of the event log: a method marked `@EventPattern(topic)` takes a HandedBatch
 * and resolves with its BatchOutcome. What it throws reaches the log's consumer, which comes again with the
 * same records.
 */
export class EventLogStrategy extends Server implements CustomTransportStrategy {
  override readonly propagatesEventHandlerErrors = true
  private readonly consumers = new Map<string, Consumer>()
  /** Batches come before a consumer has said that it has begun. */
  private readonly beginning = new Map<string, Promise<Consumer>>()

  constructor(private readonly options: EventLogStrategyOptions) {
    super()
  }

  listen(callback: (error?: unknown) => void): void {
    this.consumeAll().then(
      () => callback(),
      (error: unknown) => callback(error),
    )
  }

  /**
   * Resolves once the batches under way have been handled, or given up. `last` is called for each topic as the
   * log's consumers call it; where it rejects, so does this, with everything stopped.
   */
  async close(last?: (topic: SourceTopic) => Promise<void>): Promise<void> {
    const stops = [...this.consumers].map(([topic, consumer]) =>
      consumer.stop(last && (() => last(topic as SourceTopic))),
    )
    await Promise.allSettled(stops)
    this.consumers.clear()
    this.beginning.clear()
    await Promise.all(stops)
  }

  /** As the log's consumers commit. Waits for the topic's to have begun: `startAt` must not wait for this. */
  async commit(topic: SourceTopic, places: readonly GroupPlace[]): Promise<void> {
    // Not a turn later, where it has begun: a partition that was given anew meanwhile would pass for the same.
    const consumer = this.consumers.get(topic) ?? (await this.beginning.get(topic))
    if (consumer === undefined) throw new NotAssignedError(`nothing of ${topic} is consumed`)
    await consumer.commit(places)
  }

  /** Asks for a partition's start position anew, where it is this instance's. */
  locateAgain({ topic, partition }: Partition): void {
    this.consumers.get(topic)?.locateAgain(partition)
  }

  /** The offset behind all that was handled of a partition; null if it is not this instance's. */
  handledTo({ topic, partition }: Partition): number | null {
    const own = this.consumers.get(topic)?.positions() ?? []
    return own.find((position) => position.partition === partition)?.offset ?? null
  }

  override on(): never {
    throw new Error('the event log has no events of its own')
  }

  override unwrap(): never {
    throw new Error('the event log is reached through its port')
  }

  private async consumeAll(): Promise<void> {
    const { log, ...spec } = this.options
    for (const topic of this.messageHandlers.keys()) {
      // Listening again, after it had failed.
      if (this.consumers.has(topic)) continue
      const handle = (batch: RecordBatch, signal: AbortSignal) => this.dispatch({ ...batch, signal })
      const beginning = log.consume({ ...spec, topic: topic as SourceTopic, handle })
      this.beginning.set(topic, beginning)
      this.consumers.set(topic, await beginning)
    }
  }

  private async dispatch(batch: HandedBatch): Promise<BatchOutcome> {
    const handler = this.messageHandlers.get(batch.topic)
    if (handler === undefined) throw new Error(`nothing handles ${batch.topic}`)
    const result: unknown = await handler(batch, new BaseRpcContext([]))
    const outcome: unknown = await lastValueFrom(this.transformToObservable(result))
    return outcome as BatchOutcome
  }
}

/** Hands errors on as they are: Nest's own filter would replace them by "Internal server error". */
@Catch()
export class PassErrorsOn implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error)
  }
}
