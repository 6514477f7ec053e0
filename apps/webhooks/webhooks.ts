import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { CustomStrategy } from '@nestjs/microservices'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { budgetScale } from '#libs/runtime/config/memory-settings.js'
import { countExhausted } from '#libs/runtime/fair-share.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { RoleConsumers, EventLogStrategy } from '#libs/role/role-consumers.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { Repetition } from '#libs/runtime/timing/repetition.js'
import { WebhookSender } from './sender/webhook-sender.js'
import { Attempts, WebhookMetrics } from './attempts.js'
import { Outcomes, Disabling } from './outcomes.js'
import { Dispatcher } from './dispatcher.js'
import { MatchingController, MatchingPorts } from './matching.controller.js'
import { Requests } from './matching.js'
import { NotificationBodies } from './notification-body.js'
import { ReplayPages } from './replay-pages.js'
import { ReplayRunner } from './replay-runner.js'

/*
 * The webhooks consume inbox-events and ask for a delivery to each webhook that is to be told; the projector makes
 * views of that; what is due in them is claimed, sent, and the outcome told to the log.
 */

export interface WebhooksOptions {
  engine: Engine
  settings: Settings
  now: () => Date
  logger: Logger
  registry: Registry
}

export interface Webhooks {
  /** Resolves once the attempts under way are over, and nothing more is asked for. */
  close(): Promise<void>
}

/** Beyond the longest attempt, until its outcome is in the views. */
const LEASE_SLACK_MS = 15_000
/** As long as the log has what became of them. */
const KEPT_MS = 30 * 86_400_000
const FORGET_EVERY_MS = 3_600_000
const REPLAY_EVERY_MS = 250

export async function startWebhooks({
  engine,
  settings,
  now,
  logger,
  registry,
}: WebhooksOptions): Promise<Webhooks> {
  const { log, inboxes, webhooks, deliveries, replays, projections, vault, secrets, signals } = engine
  const onExhausted = countExhausted(registry)
  const metrics = new WebhookMetrics(registry, () => deliveries.earliestDue(), now)
  const recorder = new Recorder(log, '/mayfly/webhooks', now)
  const views = new ConsistentViews(log, inboxes, signals)
  const outcomes = new Outcomes({ recorder, logger })
  const requests = new Requests({ inboxes, recorder, now })
  const timeoutMs = settings.webhookTimeoutMs
  const sender = new WebhookSender({
    allowPrivate: settings.webhookAllowPrivate,
    ports: settings.webhookPorts,
    timeoutMs,
    dnsServers: settings.dnsServers,
  })

  @Module({
    controllers: [MatchingController],
    providers: [
      { provide: MatchingPorts, useValue: { log, webhooks, views, requests, recorder, metrics, now } },
    ],
  })
  class WebhooksModule {}

  const consumers = new RoleConsumers({
    ...{ log, group: 'webhooks', logger, registry },
    startAt: () => Promise.resolve('committed'),
  })
  const service = await NestFactory.createMicroservice<CustomStrategy>(WebhooksModule, {
    strategy: new EventLogStrategy(consumers),
    logger: false,
    abortOnError: false,
  })
  await service.listen()
  const bodies = new NotificationBodies({
    ...{ inboxes, vault, now },
    memoryScale: budgetScale(settings),
    onExhausted: () => onExhausted('webhook-bodies'),
  })
  const disabling = new Disabling({ store: projections, recorder, now })
  const ports = { webhooks, replays, views, vault, secrets, bodies, sender, outcomes, disabling, now }
  const dispatcher = new Dispatcher({
    ...{ deliveries, webhooks, outcomes, signals, log, now, logger, metrics },
    attempts: new Attempts(ports),
    mostAttempts: settings.webhookConcurrency,
    mostOfWebhook: settings.webhookEndpointConcurrency,
    leaseMs: timeoutMs + LEASE_SLACK_MS,
  })
  await dispatcher.start()
  const runner = new ReplayRunner({
    ...{ replays, webhooks, requests, recorder, views, now, logger, metrics },
    pages: new ReplayPages({ deliveries, inboxes, log, now }),
    perSecond: settings.webhookReplayRate,
  })
  const replaying = new Repetition({
    everyMs: REPLAY_EVERY_MS,
    work: (signal) => runner.runAll(signal),
  })
  replaying.start()
  const forgetting = new Repetition({
    everyMs: FORGET_EVERY_MS,
    work: async () => {
      const before = new Date(now().getTime() - KEPT_MS)
      await Promise.all([deliveries.removeOld(before), replays.removeOldReplays(before)]).catch(
        (error: unknown) =>
          logger.error({ err: error }, 'old deliveries could not be forgotten: tried again'),
      )
    },
  })
  forgetting.start()
  return {
    async close() {
      await service.close()
      await replaying.stop()
      await dispatcher.stop()
      await forgetting.stop()
      await sender.close()
    },
  }
}
