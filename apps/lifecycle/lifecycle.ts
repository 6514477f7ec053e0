import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { CustomStrategy } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/codecs.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { EventLogStrategy } from '#libs/role/event-log-strategy.js'
import { RoleConsumers } from '#libs/role/role-consumers.js'
import { ErasureController, LifecyclePorts } from './erasure.controller.js'
import { Expiry } from './expiry.js'
import { LifecycleMetrics } from './lifecycle-metrics.js'

/*
 * The lifecycle looks for inboxes whose time is over and emits InboxExpired; it consumes InboxExpired and
 * InboxDeleted and forgets their keys.
 */

export interface LifecycleOptions {
  engine: Pick<Engine, 'log' | 'vault' | 'inboxes' | 'signals'>
  now: () => Date
  logger: Logger
  registry: Registry
}

export interface Lifecycle {
  /** Resolves once what is under way is done. */
  close(): Promise<void>
}

export async function startLifecycle({
  engine,
  now,
  logger,
  registry,
}: LifecycleOptions): Promise<Lifecycle> {
  const metrics = new LifecycleMetrics(registry, {
    countActive: () => engine.inboxes.countActive(),
    onError: (error) => logger.warn({ err: error }, 'active inboxes could not be counted'),
  })
  const recorder = new Recorder(engine.log, '/mayfly/lifecycle', now)

  @Module({
    controllers: [ErasureController],
    providers: [
      { provide: LifecyclePorts, useValue: { log: engine.log, vault: engine.vault, logger } },
      { provide: LifecycleMetrics, useValue: metrics },
    ],
  })
  class LifecycleModule {}

  const consumers = new RoleConsumers({
    ...{ log: engine.log, group: 'lifecycle', logger, registry },
    startAt: () => Promise.resolve('committed'),
  })
  const service = await NestFactory.createMicroservice<CustomStrategy>(LifecycleModule, {
    strategy: new EventLogStrategy(consumers),
    logger: false,
    abortOnError: false,
  })
  await service.listen()
  const { log, inboxes, signals } = engine
  const views = new ConsistentViews(log, inboxes, signals)
  const expiry = new Expiry({ views, inboxes, recorder, now, logger, metrics })
  expiry.start()
  return {
    async close() {
      await expiry.stop()
      await service.close()
    },
  }
}
