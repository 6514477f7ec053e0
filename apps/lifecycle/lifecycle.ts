import { Controller, Inject, UseFilters } from '@nestjs/common'
import { EventPattern, Payload } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { Counter, Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'
import { inboxEventCodec, Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { BatchOutcome, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { decodeBatch } from '#libs/ports/event-log/batch-decoding.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { createRoleService, PORTS, RethrowErrors, RoleConsumers } from '#libs/role/role-consumers.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import { beforeDeadline, PeriodicTask } from '#libs/runtime/timing.js'
import { Expiry } from './expiry.js'

/*
 * The lifecycle role finds inboxes past their expiry and emits InboxExpired. It consumes InboxExpired and
 * InboxDeleted, and deletes the keys of those inboxes.
 */

export interface LifecycleOptions {
  engine: Pick<Engine, 'log' | 'vault' | 'inboxes' | 'signals'>
  now: () => Date
  logger: Logger
  registry: Registry
}

export interface Lifecycle {
  /** Resolves once the work in progress is done. */
  close(): Promise<void>
}

const EXPIRE_EVERY_MS = 500
/** How long a scrape waits for the count of active inboxes. */
const COUNT_TIMEOUT_MS = 2_000
/** Keys need not be deleted at once, and most records are mails, which need nothing. */
const LINGER_MS = 100

export async function startLifecycle({
  engine,
  now,
  logger,
  registry,
}: LifecycleOptions): Promise<Lifecycle> {
  const { log, vault, inboxes, signals } = engine
  const make = new Metrics(registry)
  const metrics = {
    expired: make.counter('mayfly_expired_inboxes_total', 'Inboxes that expired.'),
    forgotten: make.counter('mayfly_forgotten_keys_total', 'Keys deleted because their inbox had ended.'),
  }
  make.gauge(
    'mayfly_active_inboxes',
    'Inboxes that are neither deleted nor expired. Every lifecycle process reports the same number.',
    () => beforeDeadline(COUNT_TIMEOUT_MS, inboxes.countActive()),
  )
  const consumers = new RoleConsumers({
    ...{ log, group: 'lifecycle', lingerMs: LINGER_MS, logger, registry },
    startAt: () => Promise.resolve('committed'),
  })
  const ports = { log, vault, logger, metrics }
  const service = await createRoleService(consumers, ErasureController, ports)
  await service.listen()
  const views = new ConsistentViews(log, inboxes, signals)
  const recorder = new Recorder(log, '/mayfly/lifecycle', now)
  const expiry = new Expiry({ views, inboxes, recorder, now, logger, metrics })
  const expiring = new PeriodicTask({
    everyMs: EXPIRE_EVERY_MS,
    work: (signal) => expiry.expireAllDue(signal),
  })
  expiring.start()
  return {
    async close() {
      await expiring.stop()
      await service.close()
    },
  }
}

/**
 * Deletes the key of every inbox that has ended. The group's offset is committed only afterwards, so if the process is
 * killed, the next one repeats the erasure.
 */
@Controller()
@UseFilters(RethrowErrors)
class ErasureController {
  constructor(
    @Inject(PORTS)
    private readonly ports: Pick<Engine, 'log' | 'vault'> & {
      logger: Logger
      metrics: { forgotten: Counter }
    },
  ) {}

  @EventPattern('inbox-events')
  async forgetEnded(@Payload() batch: RecordBatch): Promise<BatchOutcome> {
    const { log, vault, logger, metrics } = this.ports
    // The projector writes records that can't be decoded to the dead letters.
    const { events, outcome } = decodeBatch(inboxEventCodec, batch, log.partitionCount(batch.topic))
    const ended = events.flatMap(({ recorded: { event } }) =>
      event.type === 'InboxDeleted' || event.type === 'InboxExpired' ? [event.inboxId] : [],
    )
    if (ended.length > 0) {
      await vault.forget(ended)
      metrics.forgotten.inc(ended.length)
      logger.info({ keys: ended.length, partition: batch.partition }, 'keys of ended inboxes deleted')
    }
    return outcome
  }
}
