import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Engine } from '#libs/engines/engine.js'
import type { BatchOutcome } from '#libs/ports/event-log/event-log.js'
import { WHY_NOT_COUNTED } from '#libs/ports/usage/usage-store.js'
import {
  createRoleService,
  PORTS,
  RethrowErrors,
  RoleConsumers,
  type ConsumedBatch,
} from '#libs/role/role-consumers.js'
import type { EngineContext, RunningRole } from '#libs/role/run-role.js'
import { Backoff, unlessAborted } from '#libs/runtime/timing.js'
import { analyticsMetrics } from './analytics-metrics.js'
import { COUNTED_TOPICS, type CountedTopic } from './event-rows.js'
import { TopicSink } from './topic-sink.js'

/*
 * The analytics role consumes usage-events, inbox-events and webhook-events, and writes a row for each event to the
 * usage store, in large batches and effectively once. It emits no events.
 */

export interface AnalyticsOptions extends Pick<EngineContext, 'logger' | 'registry' | 'running'> {
  engine: Pick<Engine, 'log' | 'usage'>
}

const GROUP = 'analytics'
/** A record may hold 40 usage events. A batch is decoded without a pause. */
const BATCH_RECORDS = 100
/** Rows are written in large batches anyway. */
const LINGER_MS = 100
const PREPARE_RETRY = { firstMs: 500, maxMs: 10_000 }

/**
 * Resolves once every partition has its start offset from the store. If the store is unavailable, resolves at once and
 * starts to count when the store is available.
 */
export async function startAnalytics(options: AnalyticsOptions): Promise<RunningRole> {
  const { engine, logger, registry, running } = options
  const { log, usage } = engine
  if (usage === null) {
    logger.info(`usage is not counted: ${WHY_NOT_COUNTED}`)
    return {}
  }
  const metrics = analyticsMetrics(registry)
  const consumers = new RoleConsumers({
    ...{ log, group: GROUP, logger, registry },
    ...{ batchRecords: BATCH_RECORDS, lingerMs: LINGER_MS },
    startAt: (range) => sinkOf(range.topic).startAt(range),
  })
  const closing = new AbortController()
  const makeSink = (topic: CountedTopic) =>
    new TopicSink({
      ...{ topic, group: GROUP, log, sink: usage.sink, metrics, logger },
      consumers,
      closing: closing.signal,
    })
  const sinks = new Map<string, TopicSink>(COUNTED_TOPICS.map((topic) => [topic, makeSink(topic)]))
  const sinkOf: SinkOf = (topic) => {
    const sink = sinks.get(topic)
    if (sink === undefined) throw new RangeError(`${topic} is not counted`)
    return sink
  }

  const service = await createRoleService(consumers, AnalyticsController, sinkOf)
  const { signal } = closing
  const listen = async () => {
    await service.listen()
    // After `listen`, because writing a batch commits offsets, which needs a consumer that has started.
    for (const sink of sinks.values()) sink.start()
  }
  const prepareAndListen = async () => {
    const retryPause = new Backoff(PREPARE_RETRY)
    for (;;) {
      await retryPause.wait(signal)
      try {
        // `close` must not wait for a store that hangs, or whose tables another process is creating.
        await unlessAborted(usage.prepare(), signal)
        await listen()
        return
      } catch (error) {
        if (signal.aborted) return
        logger.error({ err: error }, 'starting to count usage failed: retrying')
      }
    }
  }
  const isPrepared = await usage.prepare().then(
    () => true,
    (error: unknown) => {
      logger.error({ err: error }, 'preparing the tables of the usage store failed: retrying')
      return false
    },
  )
  let listening = Promise.resolve()
  // Resolves once the buffered rows are written, or writing them has failed.
  running.defer(async () => {
    // First, because writing the last rows commits offsets, which needs a consumer that has not stopped.
    await Promise.all([...sinks.values()].map((sink) => sink.stop()))
    closing.abort()
    await listening
    await service.close()
  })
  if (isPrepared) await listen()
  else listening = prepareAndListen()
  return {}
}

type SinkOf = (topic: string) => TopicSink

/** Passes batches of the log, in order for each partition, to the sink of their topic. */
@Controller()
@UseFilters(RethrowErrors)
class AnalyticsController {
  constructor(@Inject(PORTS) private readonly sinkOf: SinkOf) {}

  @EventPattern(COUNTED_TOPICS)
  count(@Payload() batch: ConsumedBatch): Promise<BatchOutcome> {
    return this.sinkOf(batch.topic).take(batch)
  }
}
