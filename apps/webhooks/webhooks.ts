import type { PlanTable } from '#libs/domain/account/access.js'
import { WEBHOOK_RETENTION_MS } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { repeat } from '#libs/role/repeat.js'
import { createRoleService, RoleConsumers } from '#libs/role/role-consumers.js'
import type { EngineContext, RunningRole } from '#libs/role/run-role.js'
import { budgetScale } from '#libs/runtime/config/memory-settings.js'
import { countExhausted } from '#libs/runtime/fairness/budget.js'
import { Attempts } from './attempts.js'
import { Dispatcher } from './dispatcher.js'
import { MatchingController } from './matching.controller.js'
import { DeliveryRequests } from './matching.js'
import { NotificationBodies } from './notification-body.js'
import { Outcomes } from './outcomes.js'
import { QuotaNotices } from './quota-notices.js'
import { ReplayPages } from './replay-pages.js'
import { ReplayRunner } from './replay-runner.js'
import { WebhookSender } from './sender/webhook-sender.js'
import { webhookMetrics } from './webhook-metrics.js'

/*
 * The webhooks role consumes inbox-events and emits a DeliveryRequested for each webhook that wants an event. The
 * projector adds the delivery to the views. The dispatcher claims deliveries that are due, sends them, and emits their
 * outcomes. The role also consumes account-events, to deliver to a new webhook the events that it has missed, and
 * events of the account itself.
 */

/** Added to the timeout of an attempt, until its outcome is in the views. */
const LEASE_SLACK_MS = 15_000
const REMOVE_EVERY_MS = 3_600_000
const REPLAY_EVERY_MS = 250
/** Short, because a delivery starts after it. */
const LINGER_MS = 10

/** Closing waits until the attempts in progress have ended and no more deliveries are requested. */
export async function startWebhooks(context: EngineContext & { plans: PlanTable }): Promise<RunningRole> {
  const { plans, engine, settings, now, logger, registry, running } = context
  const { log, accounts, inboxes, webhooks, deliveries, replays, vault, secrets, signals } = engine
  const onExhausted = countExhausted(registry)
  const metrics = webhookMetrics(registry, () => deliveries.earliestDue(), now)
  const recorder = new Recorder(log, '/mayfly/webhooks', now)
  const views = new ConsistentViews(log, inboxes, signals)
  const outcomes = new Outcomes({ recorder, deliveries, now, logger })
  const requests = new DeliveryRequests({ inboxes, recorder, now })
  const timeoutMs = settings.webhookTimeoutMs
  const sender = new WebhookSender({
    allowPrivate: settings.webhookAllowPrivate,
    ports: settings.webhookPorts,
    timeoutMs,
    dnsServers: settings.dnsServers,
  })

  const consumers = new RoleConsumers({
    ...{ log, group: 'webhooks', lingerMs: LINGER_MS, logger, registry },
    startAt: () => Promise.resolve('committed'),
  })
  const personal = new PersonalData({
    ...{ vault, keys: secrets },
    onError: (error) => logger.error({ err: error }, 'opening the URL of a webhook failed'),
  })
  const quotas = new QuotaNotices({ inboxes, accounts, webhooks, views, plans, requests, now })
  const ports = { log, accounts, webhooks, views, requests, quotas, recorder, metrics, now }
  const service = await createRoleService(consumers, MatchingController, ports)
  const bodies = new NotificationBodies({
    ...{ inboxes, vault, now },
    memoryScale: budgetScale(settings),
    onExhausted: () => onExhausted('webhook-bodies'),
  })
  const dispatcher = new Dispatcher({
    ...{ deliveries, webhooks, outcomes, signals, log, now, logger, metrics },
    attempts: new Attempts({
      webhooks,
      replays,
      views,
      vault,
      secrets,
      personal,
      bodies,
      sender,
      outcomes,
      now,
    }),
    maxAttempts: settings.webhookConcurrency,
    maxPerWebhook: settings.webhookEndpointConcurrency,
    leaseMs: timeoutMs + LEASE_SLACK_MS,
  })
  const runner = new ReplayRunner({
    ...{ replays, webhooks, requests, recorder, views, now, logger, metrics },
    pages: new ReplayPages({ deliveries, inboxes, log, now }),
    perSecond: settings.webhookReplayRate,
  })
  const removeOld = async () => {
    const before = new Date(now().getTime() - WEBHOOK_RETENTION_MS)
    await Promise.all([deliveries.removeOld(before), replays.removeOldReplays(before)])
  }

  // Closed from the last to the first: the consumers first, so that another process takes over their partitions while
  // the attempts in progress end.
  running.defer(() => sender.close())
  repeat(context, REMOVE_EVERY_MS, 'removing old deliveries failed: retrying', removeOld)
  running.defer(() => dispatcher.stop())
  repeat(context, REPLAY_EVERY_MS, 'claiming replays failed: retrying', (signal) => runner.runAll(signal))
  running.defer(() => service.close())
  await service.listen()
  await dispatcher.start()
  return {}
}
