import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { BatchOutcome } from '#libs/ports/event-log/event-log.js'
import { PassErrorsOn, type HandedBatch } from '#libs/role/event-log-strategy.js'
import type { CountedTopic } from './event-rows.js'
import type { TopicSink } from './topic-sink.js'

/** Each topic's own way to the store. */
export abstract class TopicSinks {
  abstract readonly byTopic: Readonly<Record<CountedTopic, TopicSink>>
}

/** Takes batches of the log, in order per partition, and hands them to what gathers them. */
@Controller()
@UseFilters(PassErrorsOn)
export class AnalyticsController {
  constructor(private readonly sinks: TopicSinks) {}

  @EventPattern('usage-events')
  countUsage(@Payload() batch: HandedBatch): Promise<BatchOutcome> {
    return this.sinks.byTopic['usage-events'].take(batch)
  }

  @EventPattern('inbox-events')
  countInboxes(@Payload() batch: HandedBatch): Promise<BatchOutcome> {
    return this.sinks.byTopic['inbox-events'].take(batch)
  }

  @EventPattern('webhook-events')
  countDeliveries(@Payload() batch: HandedBatch): Promise<BatchOutcome> {
    return this.sinks.byTopic['webhook-events'].take(batch)
  }
}
