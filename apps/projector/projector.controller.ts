import { Controller, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import { accountEventCodec } from '#libs/event-log/account-events.js'
import { decodeBatch } from '#libs/event-log/decode-batch.js'
import type { BatchOutcome, EventLog, RecordBatch, StoredRecord } from '#libs/event-log/event-log.js'
import { inboxEventCodec } from '#libs/event-log/inbox-events.js'
import { PassErrorsOn } from '#libs/log-transport/event-log-strategy.js'
import { projectAccountEvent } from '#libs/read-model/account-projection.js'
import { beginViews } from '#libs/read-model/beginning.js'
import type { ProjectionStore, StepOutcome } from '#libs/read-model/projection-store.js'
import { movedChannel } from '#libs/read-model/watermark.js'
import type { Signals } from '#libs/signals/signals.js'
import { firstStepOf, InboxProjector } from './inbox-projector.js'
import { ProjectorMetrics } from './projector-metrics.js'

/** What the projector works with, made by who composes it. */
export abstract class ProjectorPorts {
  abstract readonly log: Pick<EventLog, 'setAside' | 'topology'>
  abstract readonly projections: ProjectionStore
  abstract readonly signals: Signals
  abstract readonly logger: Logger
}

/** Takes batches of the log, in order per partition, and moves the views step by step. */
@Controller()
@UseFilters(PassErrorsOn)
export class ProjectorController {
  constructor(
    private readonly ports: ProjectorPorts,
    private readonly inboxes: InboxProjector,
    private readonly metrics: ProjectorMetrics,
  ) {}

  @EventPattern('inbox-events')
  async projectInboxes(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const started = performance.now()
    const decoded = firstStepOf(await decodeBatch(inboxEventCodec, batch, this.setAside(batch)))
    const applied = await this.inboxes.project(batch, firstOffset(batch), decoded)
    return this.conclude(batch, applied, decoded.outcome, started)
  }

  /** One event to a step: they are few, and each is judged by what the one before it left. */
  @EventPattern('account-events')
  async projectAccounts(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const started = performance.now()
    const { topic, partition } = batch
    const { projections } = this.ports
    const { events, next, outcome } = await decodeBatch(accountEventCodec, batch, this.setAside(batch))
    let from = firstOffset(batch)
    let applied: StepOutcome = 'applied'
    for (const [index, { recorded }] of events.entries()) {
      const { event } = recorded
      const keyId = event.type === 'ApiKeyIssued' ? event.keyId : null
      const changes = projectAccountEvent(await projections.accountSlice(event.accountId, keyId), event)
      const to = events[index + 1]?.offset ?? next
      applied = await projections.apply({ topic, partition, from, to, changes, contents: [] })
      if (applied !== 'applied') break
      from = to
    }
    if (events.length === 0) {
      applied = await projections.apply({ topic, partition, from, to: next, changes: [], contents: [] })
    }
    return this.conclude(batch, applied, outcome, started)
  }

  private async conclude(
    batch: RecordBatch,
    applied: StepOutcome,
    outcome: BatchOutcome,
    started: number,
  ): Promise<BatchOutcome> {
    const { logger, signals } = this.ports
    const { topic, partition, records } = batch
    const place = { topic, partition, from: firstOffset(batch) }
    if (applied !== 'applied') {
      logger.warn({ ...place, ...applied }, 'the views stand elsewhere: going on from there')
      return { seekTo: applied.standsAt < place.from ? await this.beginAgain(batch) : applied.standsAt }
    }
    const ms = performance.now() - started
    this.metrics.batch(topic, records.length, ms)
    logger.debug({ ...place, records: records.length, ms: Math.round(ms) }, 'views moved')
    signals.publish(movedChannel(batch))
    return outcome
  }

  /** For views that were emptied or put back from an older copy: they are to say that they are catching up. */
  private async beginAgain(batch: RecordBatch): Promise<number> {
    const { log, projections } = this.ports
    return (await beginViews(projections, log, batch)).offset
  }

  private setAside(batch: RecordBatch): (record: StoredRecord, reason: string) => Promise<void> {
    const { topic, partition } = batch
    return async (record, reason) => {
      await this.ports.log.setAside(batch, record, reason)
      this.metrics.deadLetters.inc({ topic })
      const { offset } = record
      this.ports.logger.error(
        { topic, partition, offset, reason },
        'a record could not be decoded: set aside',
      )
    }
  }
}

function firstOffset(batch: RecordBatch): number {
  return batch.records[0]?.offset ?? 0
}
