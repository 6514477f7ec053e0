import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import { decodeBatch } from '#libs/ports/event-log/decode-batch.js'
import type {
  PartitionRange,
  LogReader,
  BatchOutcome,
  LogLayout,
  RecordBatch,
} from '#libs/ports/event-log/event-log.js'
import { inboxEventCodec, accountEventCodec, type Recorder } from '#libs/ports/event-log/codecs.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { PassErrorsOn } from '#libs/role/event-log-strategy.js'
import type { WebhookQueries } from '#libs/ports/read-model/queries.js'
import { notificationsIn, firstReplayIdOf } from './matching.js'
import type { Requests } from './requests.js'

export interface BackfillOptions {
  log: LogReader
  views: Pick<ConsistentViews, 'waitUntilAllVisible'>
  requests: Requests
  recorder: Pick<Recorder, 'record'>
  now: () => Date
}

const TOPIC = 'inbox-events'

/**
 * Asks for what a webhook is to be told that no matcher asks for: what came between its registration and the moment
 * from which the views show it to them, and what its inboxes held before, where it wants that. What is asked for
 * twice is delivered once.
 */
export class Backfill {
  constructor(private readonly options: BackfillOptions) {}

  /** To be called once the views show the webhook. Rejects if the views or the log can't tell yet. */
  async run(webhook: Webhook): Promise<void> {
    const { partitions } = await this.options.log.topology(TOPIC)
    const behind = partitions.flatMap(({ partition, end }) => {
      const since = webhook.positions.find((position) => position.partition === partition)
      return since === undefined ? [] : [{ topic: TOPIC, partition, first: since.offset, end } as const]
    })
    // What is told is read from the views.
    await this.options.views.waitUntilAllVisible(behind)
    for (const range of behind) await this.askForRange(webhook, range)
    if (webhook.startFrom !== 'now') await this.askForHeld(webhook)
  }

  private async askForRange(webhook: Webhook, range: PartitionRange): Promise<void> {
    const { log, requests } = this.options
    const { topic, partition } = range
    if (range.first >= range.end) return
    for await (const records of log.read(range)) {
      const batch = { topic, partition, from: range.first, next: range.end, records }
      const { events } = decodeBatch(inboxEventCodec, batch, log.partitionCount(topic))
      const notifications = notificationsIn(events, partition)
      await requests.ask(notifications, [webhook])
    }
  }

  /** What came before its registration a replay tells: there may be any amount of it. */
  private async askForHeld({ id: webhookId, accountId, environment, startFrom }: Webhook): Promise<void> {
    const { recorder, now } = this.options
    const since = startFrom instanceof Date ? startFrom : null
    await recorder.record(
      {
        ...{
          type: 'ReplayRequested',
          webhookId,
          replayId: firstReplayIdOf(webhookId),
          accountId,
          environment,
        },
        selection: { kind: 'held', since },
        requestedAt: now(),
      },
      { accountId, environment, keyId: null },
    )
  }
}

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
