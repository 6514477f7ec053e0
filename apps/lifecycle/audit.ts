import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Account } from '#libs/domain/account/account.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { checkpointBody } from '#libs/domain/audit/checkpoint.js'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import { digestOf, logIdOf, originOf } from '#libs/domain/audit/leaf.js'
import { rootOf } from '#libs/domain/audit/tree.js'
import { cosignaturesIn, type WitnessPolicy } from '#libs/domain/audit/witness-policy.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { WebhookEvent } from '#libs/domain/webhook/events.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import {
  accountEventCodec,
  auditEventCodec,
  inboxEventCodec,
  webhookEventCodec,
  type EventCodec,
} from '#libs/ports/event-log/cloud-event.js'
import type { BatchOutcome, LogAppender, LogLayout, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { allOf } from '#libs/ports/read-model/account-state.js'
import { readWitnessPolicy } from '#libs/role/witness-policy.js'
import { repeat } from '#libs/role/repeat.js'
import { createRoleService, PORTS, RethrowErrors, RoleConsumers } from '#libs/role/role-consumers.js'
import type { EngineContext } from '#libs/role/run-role.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { Witnesses } from './witnesses.js'

/*
 * The audit logs: a leaf for each event of inbox-events and account-events, and if wanted of webhook-events, in the log of
 * its account, and checkpoints, which the API signs.
 */

/** Checkpoints are seconds apart, so leaves can wait to be appended together. The log still has their events in memory. */
const LINGER_MS = 250
/** A step of the views writes each leaf twice. Digests of this many mails take a few milliseconds. */
const LEAVES_AT_ONCE = 200
const CHECK_DUE_EVERY_MS = 500
const LOGS_AT_ONCE = 100
/** How often logs that do not grow are compared with the policy of witnesses, which may have changed. */
const CHECK_POLICY_EVERY_MS = 600_000
/** A log whose checkpoint was not recorded, or not cosigned, is due again after this time. */
const LEASE_MS = 10_000

export async function startAudit(context: EngineContext): Promise<void> {
  const { engine, logger, registry, running, now, settings } = context
  const policy = readWitnessPolicy(settings.auditWitnessPolicy)
  const record = async (event: AuditEvent) => {
    const occurrence = { id: mintId('evt'), time: now(), source: '/mayfly/lifecycle', event }
    await engine.log.append('audit-leaves', auditEventCodec.encode(occurrence))
  }
  const consumers = new RoleConsumers({
    ...{ log: engine.log, group: 'audit', logger, registry },
    ...{ batchRecords: LEAVES_AT_ONCE, lingerMs: LINGER_MS },
    startAt: () => Promise.resolve('committed'),
  })
  const sequencing = settings.auditDeliveries ? SequencingWithDeliveries : SequencingController
  const service = await createRoleService(consumers, sequencing, { log: engine.log, record })
  running.defer(() => service.close())
  await service.listen()
  const { audit, secrets } = engine
  const { publicUrl } = settings
  const witnesses = policy && new Witnesses({ policy, publicUrl, secrets, audit, record, logger })
  if (witnesses !== null) running.defer(() => witnesses.stop())
  const untaken = 'taking checkpoints of audit logs failed: retrying'
  repeat(context, CHECK_DUE_EVERY_MS, untaken, checkpointing(context, record, witnesses))
  if (policy === null) return
  const uncompared = 'comparing audit logs with the policy of witnesses failed: retrying'
  repeat(context, CHECK_POLICY_EVERY_MS, uncompared, applying(context, record, policy))
}

interface SequencingPorts {
  log: LogAppender & LogLayout
  record: (event: AuditEvent) => Promise<void>
}

/**
 * Appends the leaves. The group's offset is committed only afterwards, so if the process is killed, no leaf is missing,
 * and those that are appended again have no effect.
 */
@Controller()
@UseFilters(RethrowErrors)
class SequencingController {
  constructor(@Inject(PORTS) private readonly ports: SequencingPorts) {}

  @EventPattern('inbox-events')
  sequenceInboxes(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.sequence(inboxEventCodec, batch)
  }

  @EventPattern('account-events')
  sequenceAccounts(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.sequence(accountEventCodec, batch)
  }

  protected async sequence<Event extends AccountEvent | InboxEvent | WebhookEvent>(
    codec: EventCodec<Event>,
    batch: RecordBatch,
  ): Promise<BatchOutcome> {
    const { topic, partition } = batch
    const { log, record } = this.ports
    // The projector writes records that can't be decoded to the dead letters.
    const { events, outcome } = decodeBatch(codec, batch, log.partitionCount(topic))
    const records = new Map(batch.records.map((each) => [each.offset, each]))
    const leaves = events.flatMap(({ offset, recorded }) => {
      const { id, time, environment, accountId, keyId, actor = null, event } = recorded
      const stored = records.get(offset)
      if (stored === undefined) return []
      const leaf = {
        ...{ id, time, environment, topic, partition, offset },
        actor: actor ?? keyId,
        recordSha256: digestOf(stored),
        subject: subjectOf(event),
        type: stored.headers.ce_type ?? '',
      }
      return [{ accountId, leaf }]
    })
    const byAccount = Map.groupBy(leaves, ({ accountId }) => accountId)
    await Promise.all(
      [...byAccount].map(async ([accountId, own]) => {
        // One after the other: a leaf that came before an earlier one would exclude it.
        for (const some of chunksOf(own, LEAVES_AT_ONCE)) {
          const event = { type: 'LeavesSequenced', logId: logIdOf(accountId) } as const
          await record({ ...event, leaves: some.map(({ leaf }) => leaf) })
        }
      }),
    )
    return outcome
  }
}

/** With leaves for the deliveries of webhooks, which are many. */
class SequencingWithDeliveries extends SequencingController {
  @EventPattern('webhook-events')
  sequenceDeliveries(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    return this.sequence(webhookEventCodec, batch)
  }
}

/** What an event is about: the first of these that it has. */
const SUBJECTS = ['webhookId', 'domainId', 'sessionId', 'memberId', 'inboxId', 'keyId', 'accountId']

function subjectOf(event: AccountEvent | InboxEvent | WebhookEvent): string {
  const properties: Readonly<Record<string, unknown>> = { ...event }
  return SUBJECTS.map((name) => properties[name]).find((value) => typeof value === 'string') ?? ''
}

/**
 * Returns a function that takes the checkpoints that are due. Several processes may take them: what the views show of a log
 * is the beginning of its leaves on the event log, so all its checkpoints are consistent.
 */
function checkpointing(
  { engine, now }: EngineContext,
  record: SequencingPorts['record'],
  witnesses: Witnesses | null,
): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    for (let hasMore = true; hasMore && !signal.aborted;) {
      const takenAt = now()
      const due = await engine.audit.leaseDue({ now: takenAt, leaseMs: LEASE_MS, limit: LOGS_AT_ONCE })
      await Promise.all(
        due.map(async (log) => {
          const { id: logId, tree, checkpoint: last } = log
          const hasGrown = tree.size !== last?.size
          const checkpoint = hasGrown
            ? { size: tree.size, root: rootOf(tree).toString('base64'), takenAt }
            : last
          const awaitsWitnesses = witnesses !== null
          // Without witnesses, a log that awaits them since they were set is recorded not to.
          if (hasGrown || !awaitsWitnesses)
            await record({ type: 'CheckpointTaken', logId, ...checkpoint, awaitsWitnesses })
          witnesses?.add({ ...log, checkpoint })
        }),
      )
      hasMore = due.length >= LOGS_AT_ONCE
    }
  }
}

/** Returns a function that has checkpoints cosigned that do not meet the policy, such as those of before it was set. */
function applying(
  { engine, settings }: EngineContext,
  record: SequencingPorts['record'],
  policy: WitnessPolicy,
): (signal: AbortSignal) => Promise<void> {
  return async (signal) => {
    for await (const { id } of allOf<Account>((query) => engine.accounts.listAccounts(query))) {
      if (signal.aborted) return
      const log = await engine.audit.log(logIdOf(id))
      if (log === null || log.checkpoint === null || log.awaitsWitnesses) continue
      const body = checkpointBody(originOf(settings.publicUrl, log.id), log.checkpoint)
      const { cosignatures, isMet } = cosignaturesIn(policy, body, log.cosigned?.cosignatures.join('') ?? '')
      if (isMet && cosignatures.length > 0) continue
      await record({ type: 'CheckpointTaken', logId: log.id, ...log.checkpoint, awaitsWitnesses: true })
    }
  }
}
