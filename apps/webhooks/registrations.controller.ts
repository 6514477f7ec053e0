import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import { accountEventCodec } from '#libs/ports/event-log/codecs.js'
import { decodeBatch } from '#libs/ports/event-log/decode-batch.js'
import type { BatchOutcome, LogLayout, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { PassErrorsOn } from '#libs/role/event-log-strategy.js'
import type { WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { Backfill } from './backfill.js'

/** What following registrations works with, made by who composes it. */
export abstract class RegistrationPorts {
  abstract readonly log: LogLayout
  abstract readonly webhooks: Pick<WebhookQueries, 'webhook'>
  abstract readonly views: Pick<ConsistentViews, 'waitUntilVisible'>
  abstract readonly backfill: Backfill
}

/** Follows registrations, and has each new webhook told what it has missed. */
@Controller()
@UseFilters(PassErrorsOn)
export class RegistrationsController {
  constructor(private readonly ports: RegistrationPorts) {}

  @EventPattern('account-events')
  async follow(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, webhooks, views, backfill } = this.ports
    const { topic, partition } = batch
    const { events, outcome } = decodeBatch(accountEventCodec, batch, log.partitionCount(topic))
    for (const { offset, recorded } of events) {
      const { event } = recorded
      if (event.type !== 'WebhookRegistered') continue
      await views.waitUntilVisible({ topic, partition, offset })
      const webhook = await webhooks.webhook(event.webhookId)
      if (webhook !== null) await backfill.run(webhook)
    }
    return outcome
  }
}
