import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import { accountEventCodec, inboxEventCodec, webhookEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { decodeBatch, type DecodedBatch, appendDeadLetter } from '#libs/ports/event-log/partition-loop.js'
import type {
  BatchOutcome,
  LogAppender,
  LogLayout,
  Partition,
  RecordBatch,
  StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { RethrowErrors, type ConsumedBatch } from '#libs/role/role-consumers.js'
import {
  projectWebhookEvents,
  webhookRowsBefore,
  projectAccountEvent,
  sliceConcerned,
} from '#libs/ports/read-model/projections.js'
import {
  type ProjectionStore,
  type StepOutcome,
  beginViews,
} from '#libs/ports/read-model/projection-store.js'
import { movedChannel, inboxChannel } from '#libs/ports/read-model/consistent-views.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { InboxProjector, stepsOf } from './inbox-projector.js'
import type { ProjectorMetrics } from './projector-metrics.js'

/**
 * Records as usage when messages came into the views. Views that are rebuilt show what had been shown before: up to their
 * target nothing is recorded.
 */
export class ShownMessages {
  private readonly targets = new Map<number, number>()

  constructor(
    private readonly usage: UsageRecorder,
    private readonly queries: InboxQueries,
    private readonly now: () => Date,
  ) {}

  /** To be called once a partition's views have been begun. */
  async begin({ topic, partition }: Partition): Promise<void> {
    if (topic !== 'inbox-events') return
    const progress = await this.queries.progress({ topic, partition })
    this.targets.set(partition, progress?.target ?? Infinity)
  }

  record({ partition }: Partition, events: DecodedBatch<InboxEvent>['events']): void {
    const target = this.targets.get(partition) ?? Infinity
    const shownAt = this.now()
    for (const { offset, recorded } of events) {
      const { event } = recorded
      if (event.type !== 'MessageReceived' || event.inbox === null || offset < target) continue
      const { inboxId, messageId, receivedAt, inbox } = event
      const { labels } = inbox
      const keyId = recorded.keyId ?? inbox.keyId
      const shown = { type: 'MessageShown', keyId, labels, inboxId, messageId, receivedAt, shownAt } as const
      this.usage.record(shown, recorded)
    }
  }
}

/** What the projector works with. */
export abstract class ProjectorPorts {
  abstract readonly log: LogAppender & LogLayout
  abstract readonly projections: ProjectionStore
  abstract readonly signals: Signals
  abstract readonly logger: Logger
  abstract readonly inboxProjector: InboxProjector
  abstract readonly shown: ShownMessages
  abstract readonly metrics: ProjectorMetrics
}

/** Takes batches of the log, in order per partition, and moves the views step by step. */
@Controller()
@UseFilters(RethrowErrors)
export class ProjectorController {
  /** By partition, behind the last record that this process set aside. */
  private readonly setAsideTo = new Map<string, number>()

  constructor(private readonly ports: ProjectorPorts) {}

  @EventPattern('inbox-events')
  async projectInboxes(@Payload() batch: ConsumedBatch): Promise<BatchOutcome> {
    const { log, inboxProjector, signals, shown } = this.ports
    const decoded = decodeBatch(inboxEventCodec, batch, log.partitionCount(batch.topic))
    let { from } = batch
    for (const step of stepsOf(decoded)) {
      const started = performance.now()
      await this.setAside(batch, step.undecodable)
      const part = { ...batch, from }
      const applied = await inboxProjector.project(part, step)
      if (applied === 'applied') {
        const inboxIds = new Set(step.events.map(({ recorded }) => recorded.event.inboxId))
        for (const inboxId of inboxIds) signals.publish(inboxChannel(inboxId))
        shown.record(part, step.events)
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
    const { topic, partition } = batch
    const { log, projections } = this.ports
    const partitions = log.partitionCount(topic)
    const { events, undecodable, next, outcome } = decodeBatch(accountEventCodec, batch, partitions)
    await this.setAside(batch, undecodable)
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
    const { topic, partition, from } = batch
    const { log, projections } = this.ports
    const step = decodeBatch(webhookEventCodec, batch, log.partitionCount(topic))
    await this.setAside(batch, step.undecodable)
    const events = step.events.map(({ offset, recorded: { event } }) => ({ offset, event }))
    const changes = projectWebhookEvents(await webhookRowsBefore(projections, events), events)
    const applied = await projections.apply({ topic, partition, from, to: step.next, changes, contents: [] })
    return this.conclude(batch, applied, step.outcome, { started, records: batch.records.length })
  }

  private async conclude(
    batch: RecordBatch,
    applied: StepOutcome,
    outcome: BatchOutcome,
    { started, records }: { started: number; records: number },
  ): Promise<BatchOutcome> {
    const { logger, log, projections, signals, shown, metrics } = this.ports
    const { topic, partition, from } = batch
    const at = { topic, partition, from }
    if (applied === 'applied') {
      const ms = performance.now() - started
      metrics.records.inc({ topic }, records)
      metrics.batchSeconds.observe({ topic }, ms / 1000)
      logger.debug({ ...at, records, ms: Math.round(ms) }, 'views moved')
      signals.publish(movedChannel(batch))
      return outcome
    }
    if (applied !== 'absent' && applied.standsAt > from) {
      logger.warn({ ...at, ...applied }, 'the views stand further on: going on from there')
      return { seekTo: applied.standsAt }
    }
    // Emptied, or restored from an older copy: they must report that they are catching up.
    logger.warn({ ...at, views: applied }, 'the views were lost or put back: they are rebuilt')
    const { offset } = await beginViews(projections, log, batch)
    await shown.begin(batch)
    return { seekTo: offset }
  }

  /** Called before the step that goes past them. Of a batch that comes again, nothing is set aside twice. */
  private async setAside(
    batch: Partition,
    undecodable: readonly { record: StoredRecord; reason: string }[],
  ): Promise<void> {
    const { log, logger, metrics } = this.ports
    const { topic, partition } = batch
    const name = movedChannel(batch)
    for (const { record, reason } of undecodable) {
      const { offset } = record
      if (offset < (this.setAsideTo.get(name) ?? 0)) continue
      await appendDeadLetter(log, batch, record, reason)
      this.setAsideTo.set(name, offset + 1)
      metrics.deadLetters.inc({ topic })
      logger.error({ topic, partition, offset, reason }, 'a record could not be decoded: set aside')
    }
  }
}
