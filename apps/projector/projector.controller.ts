import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import { accountEventCodec, inboxEventCodec, webhookEventCodec } from '#libs/ports/event-log/codecs.js'
import { decodeBatch, type DecodedBatch, appendDeadLetter } from '#libs/ports/event-log/decode-batch.js'
import type {
  BatchOutcome,
  LogAppender,
  LogLayout,
  Partition,
  RecordBatch,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { PassErrorsOn, type HandedBatch } from '#libs/role/event-log-strategy.js'
import { projectAccountEvent, sliceConcerned } from '#libs/ports/read-model/account-projection.js'
import {
  type ProjectionStore,
  type StepOutcome,
  beginViews,
} from '#libs/ports/read-model/projection-store.js'
import { movedChannel, inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import { projectWebhookEvents, webhookRowsBefore } from '#libs/ports/read-model/webhook-projection.js'
import type { WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { InboxProjector, stepsOf } from './inbox-projector.js'
import { ProjectorMetrics } from './projector-metrics.js'

/** Turns a run of a partition's deliveries and replays into one step of the views. */
export class WebhookProjector {
  constructor(private readonly store: ProjectionStore) {}

  /** Resolves once the views show the events, or the store has said that it stands elsewhere. */
  async project(
    { topic, partition, from }: RecordBatch,
    { events: decoded, next: to }: DecodedBatch<WebhookEvent>,
  ): Promise<StepOutcome> {
    const events = decoded.map(({ offset, recorded: { event } }) => ({ offset, event }))
    const changes = projectWebhookEvents(await webhookRowsBefore(this.store, events), events)
    return this.store.apply({ topic, partition, from, to, changes, contents: [] })
  }
}

export interface ShownMessagesOptions {
  usage: Pick<UsageRecorder, 'record'>
  queries: Pick<InboxQueries, 'progress'>
  now: () => Date
}

/**
 * Tells whoever counts usage when messages came into the views. Views that are built anew show what had been shown
 * before: up to their target nothing is told.
 */
export class ShownMessages {
  private readonly targets = new Map<number, number>()

  constructor(private readonly options: ShownMessagesOptions) {}

  /** To be called where a partition's views have been begun. */
  async begin({ topic, partition }: Partition): Promise<void> {
    if (topic !== 'inbox-events') return
    const progress = await this.options.queries.progress({ topic, partition })
    this.targets.set(partition, progress?.target ?? Infinity)
  }

  record({ partition }: Partition, events: DecodedBatch<InboxEvent>['events']): void {
    const { usage, now } = this.options
    const target = this.targets.get(partition) ?? Infinity
    const shownAt = now()
    for (const { offset, recorded } of events) {
      const { event } = recorded
      if (event.type !== 'MessageReceived' || event.inbox === null || offset < target) continue
      const { inboxId, messageId, receivedAt, inbox } = event
      const { labels } = inbox
      const keyId = recorded.keyId ?? inbox.keyId
      usage.record({ type: 'MessageShown', keyId, labels, inboxId, messageId, receivedAt, shownAt }, recorded)
    }
  }
}

/** What the projector works with, made by who composes it. */
export abstract class ProjectorPorts {
  abstract readonly log: LogAppender & LogLayout
  abstract readonly projections: ProjectionStore
  abstract readonly signals: Signals
  abstract readonly logger: Logger
}

/** Takes batches of the log, in order per partition, and moves the views step by step. */
@Controller()
@UseFilters(PassErrorsOn)
export class ProjectorController {
  /** By partition, behind the last record that this process set aside. */
  private readonly setAsideTo = new Map<string, number>()

  constructor(
    private readonly ports: ProjectorPorts,
    private readonly inboxes: InboxProjector,
    private readonly deliveries: WebhookProjector,
    private readonly shown: ShownMessages,
    private readonly metrics: ProjectorMetrics,
  ) {}

  @EventPattern('inbox-events')
  async projectInboxes(@Payload() batch: HandedBatch): Promise<BatchOutcome> {
    const decoded = decodeBatch(inboxEventCodec, batch, this.partitionsOf(batch))
    let { from } = batch
    for (const step of stepsOf(decoded)) {
      const started = performance.now()
      await this.setAside(batch, step.undecodable)
      const part = { ...batch, from }
      const applied = await this.inboxes.project(part, step)
      if (applied === 'applied') {
        const inboxIds = new Set(step.events.map(({ recorded }) => recorded.event.inboxId))
        for (const inboxId of inboxIds) this.ports.signals.publish(inboxChannel(inboxId))
        this.shown.record(part, step.events)
      }
      const records = step.events.length + step.undecodable.length
      const outcome = await this.conclude(part, applied, decoded.outcome, { started, records })
      if (applied !== 'applied') return outcome
      from = step.next
    }
    return decoded.outcome
  }

  /** One event to a step: they are few, and each is checked by what the one before it left. */
  @EventPattern('account-events')
  async projectAccounts(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const started = performance.now()
    const { events, undecodable, next, outcome } = decodeBatch(
      accountEventCodec,
      batch,
      this.partitionsOf(batch),
    )
    await this.setAside(batch, undecodable)
    const { topic, partition } = batch
    const { projections } = this.ports
    let { from } = batch
    let applied: StepOutcome = 'applied'
    for (const [index, { recorded }] of events.entries()) {
      const { event } = recorded
      const before = await projections.accountSlice(sliceConcerned(event))
      const changes = projectAccountEvent(before, event)
      const to = events[index + 1]?.offset ?? next
      applied = await projections.apply({ topic, partition, from, to, changes, contents: [] })
      if (applied !== 'applied') break
      from = to
    }
    if (events.length === 0) {
      applied = await projections.apply({ topic, partition, from, to: next, changes: [], contents: [] })
    }
    return this.conclude(batch, applied, outcome, { started, records: batch.records.length })
  }

  @EventPattern('webhook-events')
  async projectDeliveries(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const started = performance.now()
    const step = decodeBatch(webhookEventCodec, batch, this.partitionsOf(batch))
    await this.setAside(batch, step.undecodable)
    const applied = await this.deliveries.project(batch, step)
    return this.conclude(batch, applied, step.outcome, { started, records: batch.records.length })
  }

  private partitionsOf({ topic }: Partition): number {
    return this.ports.log.partitionCount(topic)
  }

  private async conclude(
    batch: RecordBatch,
    applied: StepOutcome,
    outcome: BatchOutcome,
    { started, records }: { started: number; records: number },
  ): Promise<BatchOutcome> {
    const { logger, log, projections, signals } = this.ports
    const { topic, partition, from } = batch
    const place = { topic, partition, from }
    if (applied === 'applied') {
      const ms = performance.now() - started
      this.metrics.batch(topic, records, ms)
      logger.debug({ ...place, records, ms: Math.round(ms) }, 'views moved')
      signals.publish(movedChannel(batch))
      return outcome
    }
    if (applied !== 'absent' && applied.standsAt > from) {
      logger.warn({ ...place, ...applied }, 'the views stand further on: going on from there')
      return { seekTo: applied.standsAt }
    }
    // Emptied, or put back from an older copy: they are to say that they are catching up.
    logger.warn({ ...place, views: applied }, 'the views were lost or put back: they are rebuilt')
    const { offset } = await beginViews(projections, log, batch)
    await this.shown.begin(batch)
    return { seekTo: offset }
  }

  /** Before the step that goes past them; where a batch comes again, what has been set aside is not set aside again. */
  private async setAside(
    batch: Partition,
    undecodable: readonly { record: StoredRecord; reason: string }[],
  ): Promise<void> {
    const { log, logger } = this.ports
    const { topic, partition } = batch
    const place = movedChannel(batch)
    for (const { record, reason } of undecodable) {
      const { offset } = record
      if (offset < (this.setAsideTo.get(place) ?? 0)) continue
      await appendDeadLetter(log, batch, record, reason)
      this.setAsideTo.set(place, offset + 1)
      this.metrics.deadLetters.inc({ topic })
      logger.error({ topic, partition, offset, reason }, 'a record could not be decoded: set aside')
    }
  }
}
