import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { Counter } from 'prom-client'
import type { ApiKey } from '#libs/domain/account/account.js'
import { decide as decideAccount } from '#libs/domain/account/decide.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { decide } from '#libs/domain/inbox/decide.js'
import { erasureAfter, erasureIdOf, isEnd, type InboxEnd } from '#libs/domain/inbox/erasure.js'
import type { Engine } from '#libs/engines/engine.js'
import { DomainDns } from '#libs/mail/domain-records.js'
import {
  accountEventCodec,
  inboxEventCodec,
  Recorder,
  type Recorded,
} from '#libs/ports/event-log/cloud-event.js'
import type { BatchOutcome, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import type { KeyOwner } from '#libs/ports/key-vault/key-vault.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { DomainChecks } from '#libs/role/domain-checks.js'
import { repeat } from '#libs/role/repeat.js'
import { createRoleService, PORTS, RethrowErrors, RoleConsumers } from '#libs/role/role-consumers.js'
import type { EngineContext, RunningRole } from '#libs/role/run-role.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { beforeDeadline } from '#libs/runtime/timing.js'
import { startAudit } from './audit.js'
import { closing } from './closed-accounts.js'

/*
 * The lifecycle role finds inboxes past their expiry and emits InboxExpired. It checks the DNS records of domains that are
 * due, records API keys that expire, and notices before that, and ends all of closed accounts. It deletes the keys of
 * inboxes that have ended, of former members and of erased accounts. It writes the audit logs (`audit.ts`).
 */

const EXPIRE_EVERY_MS = 500
const EXPIRE_AT_ONCE = 500
/** Of domains, keys and closed accounts. */
const CHECK_EVERY_MS = 1_000
const KEYS_AT_ONCE = 500
/** A key whose event was not recorded is due again after this time. */
const KEY_LEASE_MS = 10_000
const DOMAINS_AT_ONCE = 100
/** A check takes at most a few seconds. A domain whose check was not recorded is due again after this time. */
const CHECK_LEASE_MS = 60_000
/** Keys need not be deleted at once, and most records are mails, which need nothing. */
const LINGER_MS = 100
/** How long a scrape waits for the count of active inboxes. */
const COUNT_TIMEOUT_MS = 2_000

/** What may end somebody. An invitation may be revoked at once, or come after the end of its account. */
const ENDS_PEOPLE = new Set<AccountEvent['type']>([
  'MemberInvited',
  'InvitationRevoked',
  'MemberRemoved',
  'AccountErased',
])

/** Closing waits for the work in progress. */
export async function startLifecycle(context: EngineContext): Promise<RunningRole> {
  const { engine, logger, registry, running } = context
  const { log, vault, inboxes, accounts, signals } = engine
  const metrics = new Metrics(registry)
  const forgotten = metrics.counter(
    'mayfly_forgotten_keys_total',
    'Keys deleted because their inbox, member or account had ended.',
  )
  metrics.gauge(
    'mayfly_active_inboxes',
    'Inboxes that are neither deleted nor expired. Every lifecycle process reports the same number.',
    () =>
      beforeDeadline(COUNT_TIMEOUT_MS, inboxes.countActive()).catch((error: unknown) => {
        logger.warn({ err: error }, 'counting the active inboxes failed')
        return NaN
      }),
  )
  const consumers = new RoleConsumers({
    ...{ log, group: 'lifecycle', lingerMs: LINGER_MS, logger, registry },
    startAt: () => Promise.resolve('committed'),
  })
  const service = await createRoleService(consumers, ErasureController, {
    ...{ log, vault, accounts, logger, forgotten, now: context.now },
    views: new ConsistentViews(log, inboxes, signals),
  })
  running.defer(() => service.close())
  await service.listen()
  await startAudit(context)
  repeat(context, EXPIRE_EVERY_MS, 'ending due inboxes failed: retrying', expiry(context))
  const dns = new DomainDns(context.settings)
  repeat(context, CHECK_EVERY_MS, 'checking domains failed: retrying', domainChecking(context, dns))
  running.defer(() => dns.close())
  repeat(context, CHECK_EVERY_MS, 'recording keys that expire failed: retrying', keyExpiry(context))
  repeat(context, CHECK_EVERY_MS, 'erasing closed accounts failed: retrying', closing(context))
  return {}
}

/**
 * Returns a function that ends inboxes that have expired, including those that expired while no lifecycle process ran.
 * Several processes may run it at once: a second InboxExpired for the same inbox has no effect. If it fails, the inboxes are
 * due again once their leases have expired.
 */
function expiry({ engine, now, logger, registry }: EngineContext): (signal: AbortSignal) => Promise<void> {
  const { log, inboxes, signals } = engine
  const views = new ConsistentViews(log, inboxes, signals)
  const recorder = new Recorder(log, '/mayfly/lifecycle', now)
  const expired = new Metrics(registry).counter('mayfly_expired_inboxes_total', 'Inboxes that expired.')

  const expire = async (inboxId: InboxId): Promise<boolean> => {
    // While the views catch up, the log may already hold an event that ended the inbox.
    if (!(await views.isComplete(inboxId))) return false
    const row = await inboxes.inbox(inboxId)
    if (row === null) return false
    const command = { type: 'ExpireInbox', inboxId, now: now() } as const
    const { events } = decide({ inbox: row.inbox, message: null }, command)
    const { accountId, environment } = row.inbox
    for (const event of events) await recorder.record(event, { accountId, environment, keyId: null })
    return events.length > 0
  }

  return async (signal) => {
    for (let hasMore = true; hasMore && !signal.aborted;) {
      const due = await inboxes.leaseDue({ now: now(), limit: EXPIRE_AT_ONCE })
      const ended = await Promise.all(due.map(expire))
      const count = ended.filter(Boolean).length
      if (count > 0) logger.info({ inboxes: count }, 'inboxes have expired')
      expired.inc(count)
      hasMore = due.length === EXPIRE_AT_ONCE
    }
  }
}

/**
 * Returns a function that records the keys that have expired and the notices that are due. Several processes may run it at
 * once: a second event has no effect, and its delivery has the same id.
 */
function keyExpiry({ engine, now, logger }: EngineContext): () => Promise<void> {
  const { log, accounts } = engine
  const recorder = new Recorder(log, '/mayfly/lifecycle', now)
  const recordDue = async (key: ApiKey): Promise<number> => {
    const { id: keyId, accountId, environment } = key
    const account = await accounts.account(accountId)
    const command = { type: 'RecordKeyExpiry', accountId, keyId, now: now() } as const
    const { events } = decideAccount({ account, key }, command)
    for (const event of events) await recorder.record(event, { accountId, environment, keyId: null })
    return events.length
  }
  return async () => {
    const due = await accounts.leaseDueKeys({ now: now(), leaseMs: KEY_LEASE_MS, limit: KEYS_AT_ONCE })
    const counts = await Promise.all(due.map(recordDue))
    const count = counts.reduce((sum, each) => sum + each, 0)
    if (count > 0) logger.info({ keys: count }, 'keys have expired or are about to')
  }
}

/** Returns a function that checks the domains that are due. */
function domainChecking({ engine, now, logger }: EngineContext, dns: DomainDns): () => Promise<void> {
  const { log, accounts } = engine
  const recorder = new Recorder(log, '/mayfly/lifecycle', now)
  const checks = new DomainChecks({ dns, accounts, now, record: (event, by) => recorder.record(event, by) })
  return async () => {
    const lease = { now: now(), leaseMs: CHECK_LEASE_MS, limit: DOMAINS_AT_ONCE }
    const due = await accounts.leaseDueDomains(lease)
    const times = await Promise.all(due.map((domain) => checks.check(domain)))
    const unanswered = times.filter((time) => time === null).length
    if (unanswered > 0) logger.warn({ domains: unanswered }, 'no DNS server gave a clear answer')
    if (due.length > unanswered) logger.info({ domains: due.length - unanswered }, 'domains checked')
  }
}

/**
 * Deletes the keys of what has ended, and with them all that they have sealed. The group's offset is committed only
 * afterwards, so if the process is killed, the next one repeats the erasure.
 */
@Controller()
@UseFilters(RethrowErrors)
class ErasureController {
  constructor(
    @Inject(PORTS)
    private readonly ports: Pick<Engine, 'log' | 'vault' | 'accounts'> & {
      views: Pick<ConsistentViews, 'waitUntilVisible'>
      logger: Logger
      forgotten: Counter
      now: () => Date
    },
  ) {}

  @EventPattern('inbox-events')
  async forgetEnded(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log } = this.ports
    // The projector writes records that can't be decoded to the dead letters.
    const { events, outcome } = decodeBatch(inboxEventCodec, batch, log.partitionCount(batch.topic))
    const ends = new Map<InboxId, Recorded<InboxEnd>>()
    for (const { recorded } of events) {
      const { event } = recorded
      // Only the first end of an inbox counts.
      if (!isEnd(event) || ends.has(event.inboxId)) continue
      ends.set(event.inboxId, { ...recorded, event })
    }
    await this.forget([...ends.keys()], batch)
    await Promise.all([...ends.values()].map((end) => this.recordErasure(end)))
    return outcome
  }

  /** If the process is killed before the group's offset is committed, it is recorded twice, with the same id. */
  private async recordErasure(recorded: Recorded<InboxEnd>): Promise<void> {
    const { log, now } = this.ports
    const { event: end, actor, keyId, accountId, environment } = recorded
    const event = erasureAfter(end, actor ?? keyId, now())
    const occurrence = {
      id: erasureIdOf(end.inboxId),
      time: event.erasedAt,
      source: '/mayfly/lifecycle',
      event,
    }
    const record = inboxEventCodec.encode({ ...occurrence, accountId, environment, keyId: null })
    await log.append('inbox-events', record)
  }

  /** The personal data of members, of invitations, and of accounts once all else in them has ended. */
  @EventPattern('account-events')
  async forgetPeople(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, views, accounts } = this.ports
    const { topic, partition } = batch
    const { events, outcome } = decodeBatch(accountEventCodec, batch, log.partitionCount(topic))
    const ends = events.filter(({ recorded }) => ENDS_PEOPLE.has(recorded.event.type))
    const last = ends.at(-1)
    if (last === undefined) return outcome
    // Not every such event has an effect: of two owners who remove each other, one stays.
    await views.waitUntilVisible({ topic, partition, offset: last.offset })
    const ended = await Promise.all(
      ends.map(async ({ recorded: { event, accountId } }): Promise<KeyOwner[]> => {
        const isErased = (await accounts.account(accountId))?.erasedAt != null
        if (!('memberId' in event) || event.memberId === null) return isErased ? [accountId] : []
        const hasEnded = (await accounts.member(event.memberId))?.endedAt != null
        return isErased || hasEnded ? [event.memberId] : []
      }),
    )
    await this.forget(ended.flat(), batch)
    return outcome
  }

  private async forget(ended: readonly KeyOwner[], { topic, partition }: RecordBatch): Promise<void> {
    if (ended.length === 0) return
    const { vault, logger, forgotten } = this.ports
    await vault.forget(ended)
    forgotten.inc(ended.length)
    logger.info(
      { keys: ended.length, topic, partition },
      'keys deleted, since their inbox, member or account has ended',
    )
  }
}
