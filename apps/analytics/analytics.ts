import { Module, Controller, UseFilters } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { type CustomStrategy, EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'
import { GrowingPause, unlessAborted } from '#libs/runtime/timing/waiting.js'
import { WHY_NOT_COUNTED, type UsageStore } from '#libs/ports/usage/usage-store.js'
import { RoleConsumers, EventLogStrategy, PassErrorsOn, type HandedBatch } from '#libs/role/role-consumers.js'
import type { BatchOutcome } from '#libs/ports/event-log/event-log.js'
import { AnalyticsMetrics } from './analytics-metrics.js'
import { COUNTED_TOPICS, type CountedTopic } from './event-rows.js'
import { TopicSink } from './topic-sink.js'

/*
 * Analytics consumes usage-events, inbox-events and webhook-events and writes a row for each event to the store of
 * usage figures, in large batches, exactly once in effect. It emits nothing.
 */

export interface AnalyticsOptions {
  engine: Pick<Engine, 'log' | 'usage'>
  logger: Logger
  registry: Registry
}

export interface Analytics {
  /** Resolves once the gathered rows are written, or can't be. */
  close(): Promise<void>
}

const GROUP = 'analytics'
/** What is made of a small batch is gone before the garbage collector has to move it. */
const BATCH_RECORDS = 200
const PREPARE_AGAIN = { firstMs: 500, mostMs: 10_000 }

/**
 * Resolves once the offset that the store has reached is known for every partition. If the store can't be reached, it
 * resolves at once, and counting begins when it can.
 */
export async function startAnalytics({ engine, logger, registry }: AnalyticsOptions): Promise<Analytics> {
  const { log, usage } = engine
  if (usage === null) {
    logger.info(`usage is not counted: ${WHY_NOT_COUNTED}`)
    return { close: () => Promise.resolve() }
  }
  const metrics = new AnalyticsMetrics(registry)
  const consumers = new RoleConsumers({
    ...{ log, group: GROUP, logger, registry },
    batchRecords: BATCH_RECORDS,
    startAt: (range) => sinks.of(range.topic).startAt(range),
  })
  const closing = new AbortController()
  const makeSink = (topic: CountedTopic) =>
    new TopicSink({
      ...{ topic, group: GROUP, log, sink: usage.sink, metrics, logger },
      consumers,
      closing: closing.signal,
    })
  const sinks: TopicSinks = new TopicSinks(new Map(COUNTED_TOPICS.map((topic) => [topic, makeSink(topic)])))

  @Module({
    controllers: [AnalyticsController],
    providers: [{ provide: TopicSinks, useValue: sinks }],
  })
  class AnalyticsModule {}

  const service = await NestFactory.createMicroservice<CustomStrategy>(AnalyticsModule, {
    strategy: new EventLogStrategy(consumers),
    logger: false,
    abortOnError: false,
  })
  const listen = async () => {
    await service.listen()
    // Not before: a batch is noted by a consumer that has begun.
    for (const topic of COUNTED_TOPICS) sinks.of(topic).start()
  }
  const whenPrepared = async ({ signal }: AbortController) => {
    const again = new GrowingPause(PREPARE_AGAIN)
    for (;;) {
      await again.wait(signal)
      // A store that hangs, or whose tables another process makes ready, is not waited for at the end.
      const isPrepared = await unlessAborted(prepare(usage, logger), signal).catch(() => false)
      if (signal.aborted) return
      if (!isPrepared) continue
      try {
        await listen()
        return
      } catch (error) {
        logger.error({ err: error }, 'usage could not be counted: tried again')
      }
    }
  }
  let listening = Promise.resolve()
  if (await prepare(usage, logger)) await listen()
  else listening = whenPrepared(closing)
  return {
    async close() {
      closing.abort()
      await listening
      await consumers.stop((topic) => sinks.of(topic).stop())
      await service.close()
    },
  }
}

async function prepare(usage: Pick<UsageStore, 'prepare'>, logger: Logger): Promise<boolean> {
  try {
    await usage.prepare()
    return true
  } catch (error) {
    logger.error({ err: error }, 'the tables of usage figures could not be made ready: tried again')
    return false
  }
}

/** The sink of each topic. */
export class TopicSinks {
  constructor(private readonly byTopic: ReadonlyMap<string, TopicSink>) {}

  of(topic: string): TopicSink {
    const sink = this.byTopic.get(topic)
    if (sink === undefined) throw new RangeError(`${topic} is not counted`)
    return sink
  }
}

/** Takes batches of the log, in order per partition, and hands them to the sink of their topic. */
@Controller()
@UseFilters(PassErrorsOn)
export class AnalyticsController {
  constructor(private readonly sinks: TopicSinks) {}

  @EventPattern(COUNTED_TOPICS)
  count(@Payload() batch: HandedBatch): Promise<BatchOutcome> {
    return this.sinks.of(batch.topic).take(batch)
  }
}
