import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { sinceReceived } from '#libs/domain/usage/usage-events.js'
import {
  accountEventCodec,
  auditEventCodec,
  inboxEventCodec,
  webhookEventCodec,
  type Recorded,
} from '#libs/ports/event-log/cloud-event.js'
import {
  partitionName,
  type BatchOutcome,
  type LogAppender,
  type LogLayout,
  type Partition,
  type RecordBatch,
  type StoredRecord,
} from '#libs/ports/event-log/event-log.js'
import { appendDeadLetter, decodeBatch, type DecodedBatch } from '#libs/ports/event-log/batch-decoding.js'
import { environmentChannel, inboxChannel, progressChannel } from '#libs/ports/read-model/consistent-views.js'
import {
  projectAccountEvent,
  projectAuditEvents,
  projectWebhookEvents,
  accountSliceBefore,
  auditLogsBefore,
  webhookRowsBefore,
} from '#libs/ports/read-model/projections.js'
import {
  beginViews,
  type Change,
  type StepOutcome,
  type ViewProgress,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { loggedEvent } from '#libs/ports/read-model/views.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { PORTS, RethrowErrors, type ConsumedBatch } from '#libs/role/role-consumers.js'
import { chunksByWeight, chunksOf } from '#libs/runtime/chunks.js'
import { InboxProjector, stepsOf } from './inbox-projector.js'
import type { ProjectorMetrics } from './projector-metrics.js'

/**
 * Records how long messages took to become visible. Views that are being rebuilt show messages that were visible
 * before, so nothing is recorded up to the target offset of the rebuild.
 */
export class MessageVisibility {
  private readonly targets = new Map<number, number>()

  constructor(
    private readonly usage: UsageRecorder,
    private readonly queries: ViewProgress,
    private readonly now: () => Date,
  ) {}

  /** Call this after `beginViews` for the partition. */
  async begin({ topic, partition }: Partition): Promise<void> {
    if (topic !== 'inbox-events') return
    const progress = await this.queries.progress({ topic, partition })
    this.targets.set(partition, progress?.target ?? Infinity)
  }

  record({ partition }: Partition, events: DecodedBatch<InboxEvent>['events']): void {
    const target = this.targets.get(partition) ?? Infinity
    const at = this.now()
    for (const { offset, recorded } of events) {
      const { event } = recorded
      if (event.type !== 'MessageReceived' || event.inbox === null || offset < target) continue
      const { labels } = event.inbox
      const keyId = recorded.keyId ?? event.inbox.keyId
      const ms = [sinceReceived(event.receivedAt, at)]
      this.usage.record({ type: 'MessageShown', keyId, labels, ms, at }, recorded)
    }
  }
}

/**
 * The channels that an event is signalled on. Events that the stream of an environment does not have, such as new
 * inboxes, must not wake its listeners.
 */
function channelsOf(recorded: Recorded<InboxEvent>): string[] {
  const { type, inboxId } = recorded.event
  const isStreamed = INBOX_EVENTS[type].sent !== null
  return isStreamed ? [inboxChannel(inboxId), environmentChannel(recorded)] : [inboxChannel(inboxId)]
}

export interface ProjectorPorts {
  log: LogAppender & LogLayout
  projections: ViewStore
  signals: Signals
  logger: Logger
  inboxProjector: InboxProjector
  visibility: MessageVisibility
  metrics: ProjectorMetrics
}

/** How the events of a topic are projected: divided into runs, and the changes of each. */
interface Projection<Logged> {
  runsOf: (events: Logged[]) => Iterable<Logged[]>
  changesOf: (store: ViewStore, run: Logged[]) => Promise<Change[]>
}

/** Leaves in one step, which writes each of them twice. An event has fewer. */
const MAX_LEAVES = 250

function leavesIn({ recorded: { event } }: { recorded: { event: AuditEvent } }): number {
  return event.type === 'LeavesSequenced' ? event.leaves.length : 1
}

/** Projects batches of the log, in order for each partition, into the views, step by step. */
@Controller()
@UseFilters(RethrowErrors)
export class ProjectorController {
  /** By partition, the offset after the last dead letter that this process has appended. */
  private readonly deadLetteredTo = new Map<string, number>()

  constructor(@Inject(PORTS) private readonly ports: ProjectorPorts) {}

  @EventPattern('inbox-events')
  async projectInboxes(@Payload() batch: ConsumedBatch): Promise<BatchOutcome> {
    const { log, inboxProjector, signals, visibility } = this.ports
    const decoded = decodeBatch(inboxEventCodec, batch, log.partitionCount(batch.topic))
    let { from } = batch
    for (const step of stepsOf(decoded)) {
      const started = performance.now()
      await this.appendDeadLetters(batch, step.undecodable)
      const part = { ...batch, from }
      const applied = await inboxProjector.project(part, step)
      if (applied === 'applied') {
        const channels = step.events.flatMap(({ recorded }) => channelsOf(recorded))
        for (const channel of new Set(channels)) signals.publish(channel)
        visibility.record(part, step.events)
      }
      const records = step.events.length + step.undecodable.length
      const outcome = await this.conclude(part, applied, decoded.outcome, { started, records })
      if (applied !== 'applied') return outcome
      from = step.next
    }
    return decoded.outcome
  }

  /** One event per step: account events are few, and each depends on the rows after the previous one. */
  @EventPattern('account-events')
  async projectAccounts(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.projectRuns(batch, accountEventCodec, {
      runsOf: (events) => chunksOf(events, 1),
      async changesOf(store, [first]) {
        if (first === undefined) return []
        const { offset, recorded } = first
        return projectAccountEvent(
          await accountSliceBefore(store, recorded.event),
          loggedEvent(offset, recorded),
        )
      },
    })
  }

  @EventPattern('audit-leaves')
  async projectAuditLogs(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.projectRuns(batch, auditEventCodec, {
      runsOf: (events) => chunksByWeight(events, MAX_LEAVES, leavesIn),
      async changesOf(store, run) {
        const events = run.map(({ recorded }) => recorded.event)
        return projectAuditEvents(await auditLogsBefore(store, events), events)
      },
    })
  }

  @EventPattern('webhook-events')
  async projectDeliveries(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.projectRuns(batch, webhookEventCodec, {
      runsOf: (events) => [events],
      async changesOf(store, run) {
        const events = run.map(({ offset, recorded: { event } }) => ({ offset, event }))
        return projectWebhookEvents(await webhookRowsBefore(store, events), events)
      },
    })
  }

  /** Projects runs of events, each in one step. */
  private async projectRuns<Event extends { type: string }, Recording extends { event: Event }>(
    batch: RecordBatch,
    codec: Parameters<typeof decodeBatch<Event, Recording>>[0],
    { runsOf, changesOf }: Projection<{ offset: number; recorded: Recording }>,
  ): Promise<BatchOutcome> {
    const started = performance.now()
    const { topic, partition } = batch
    const { log, projections } = this.ports
    const { events, undecodable, next, outcome } = decodeBatch(codec, batch, log.partitionCount(topic))
    await this.appendDeadLetters(batch, undecodable)
    const runs = events.length === 0 ? [[]] : [...runsOf(events)]
    let { from } = batch
    let applied: StepOutcome = 'applied'
    for (const [index, run] of runs.entries()) {
      const changes = await changesOf(projections, run)
      const to = runs[index + 1]?.[0]?.offset ?? next
      applied = await projections.apply({ topic, partition, from, to, changes, contents: [] })
      if (applied !== 'applied') break
      from = to
    }
    return this.conclude(batch, applied, outcome, { started, records: batch.records.length })
  }

  private async conclude(
    batch: RecordBatch,
    applied: StepOutcome,
    outcome: BatchOutcome,
    { started, records }: { started: number; records: number },
  ): Promise<BatchOutcome> {
    const { logger, log, projections, signals, visibility, metrics } = this.ports
    const { topic, partition, from } = batch
    const at = { topic, partition, from }
    if (applied === 'applied') {
      const ms = performance.now() - started
      metrics.records.inc({ topic }, records)
      metrics.batchSeconds.observe({ topic }, ms / 1000)
      logger.debug({ ...at, records, ms: Math.round(ms) }, 'views updated')
      signals.publish(progressChannel(batch))
      return outcome
    }
    if (applied !== 'absent' && applied.position > from) {
      logger.warn({ ...at, ...applied }, 'the views are at a later offset: continuing there')
      return { seekTo: applied.position }
    }
    // The views were emptied or restored from an older copy, and must report that they are catching up.
    logger.warn({ ...at, views: applied }, 'the views were lost or restored from an older copy: rebuilding')
    const { offset } = await beginViews(projections, log, batch)
    await visibility.begin(batch)
    return { seekTo: offset }
  }

  /** Call this before the step that passes the records. A record of a repeated batch is appended once. */
  private async appendDeadLetters(
    batch: Partition,
    undecodable: readonly { record: StoredRecord; reason: string }[],
  ): Promise<void> {
    const { log, logger, metrics } = this.ports
    const { topic, partition } = batch
    const name = partitionName(batch)
    for (const { record, reason } of undecodable) {
      const { offset } = record
      if (offset < (this.deadLetteredTo.get(name) ?? 0)) continue
      await appendDeadLetter(log, batch, record, reason)
      this.deadLetteredTo.set(name, offset + 1)
      metrics.deadLetters.inc({ topic })
      logger.error(
        { topic, partition, offset, reason },
        'a record could not be decoded: written to the dead letters',
      )
    }
  }
}
