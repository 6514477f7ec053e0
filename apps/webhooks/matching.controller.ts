import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import { decodeBatch } from '#libs/ports/event-log/decode-batch.js'
import type { BatchOutcome, LogLayout, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec } from '#libs/ports/event-log/codecs.js'
import { PassErrorsOn } from '#libs/role/event-log-strategy.js'
import type { WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { notificationsIn } from './matching.js'
import type { Requests } from './requests.js'
import { WebhookMetrics } from './webhook-metrics.js'

/** What matching works with, made by who composes it. */
export abstract class MatchingPorts {
  abstract readonly log: LogLayout
  abstract readonly webhooks: Pick<WebhookQueries, 'webhooksFor'>
  abstract readonly views: Pick<ConsistentViews, 'readLatest' | 'waitUntilVisible'>
  abstract readonly requests: Requests
}

/**
 * Asks for a delivery for each event and each webhook that is to be told of it. The group's offset is committed behind
 * that, so that a process killed at any moment leaves no event untold.
 */
@Controller()
@UseFilters(PassErrorsOn)
export class MatchingController {
  constructor(
    private readonly ports: MatchingPorts,
    private readonly metrics: WebhookMetrics,
  ) {}

  @EventPattern('inbox-events')
  async match(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, webhooks, views, requests } = this.ports
    const { topic, partition } = batch
    // What can't be decoded the projector sets aside.
    const { events, outcome } = decodeBatch(inboxEventCodec, batch, log.partitionCount(topic))
    const notifications = notificationsIn(events, partition)
    const last = notifications.at(-1)
    if (last === undefined) return outcome
    const inboxes = notifications.map(({ inbox }) => inbox)
    // A webhook that the views lack would never get these events.
    const concerned = await views.readLatest('account-events', () => webhooks.webhooksFor(inboxes))
    if (concerned.length === 0) return outcome
    // What is told is read from the views, and whether an inbox has a password stands there.
    const { offset } = last.position
    await views.waitUntilVisible({ topic, partition, offset })
    this.metrics.requested.inc(await requests.ask(notifications, concerned))
    return outcome
  }
}
