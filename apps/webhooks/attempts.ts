import { answerContext, seal } from '#libs/ports/key-vault/content.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { WebhookSecrets } from '#libs/ports/key-vault/master-key.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { ReplayQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { AttemptFacts, DeliveryAbandoned, DeliveryEvent } from '#libs/domain/webhook/webhook-events.js'
import { type Delivery, nextAttemptAt } from '#libs/domain/webhook/delivery.js'
import type { WebhookDisabled } from '#libs/domain/webhook/events.js'
import { stateOf } from '#libs/domain/webhook/replay.js'
import { secretsInForce, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { AttemptOutcome } from './sender/faults.js'
import type { WebhookSender } from './sender/webhook-sender.js'
import { notificationIdOf } from './matching.js'
import { type Outcomes, GONE, type Disabling } from './outcomes.js'
import type { NotificationBodies } from './notification-body.js'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export interface AttemptsOptions {
  webhooks: Pick<WebhookQueries, 'webhook'>
  replays: Pick<ReplayQueries, 'replay'>
  views: Pick<ConsistentViews, 'readLatest' | 'requireComplete'>
  vault: Pick<KeyVault, 'find'>
  secrets: Pick<WebhookSecrets, 'open' | 'openUrl'>
  bodies: NotificationBodies
  sender: Pick<WebhookSender, 'post'>
  outcomes: Pick<Outcomes, 'record'>
  disabling: Pick<Disabling, 'afterFailure'>
  now: () => Date
}

/** What became of an attempt, of which the log has been told. */
export type MadeAttempt =
  | { result: 'abandoned'; reason: DeliveryAbandoned['reason'] }
  | { result: 'succeeded'; outcome: AttemptOutcome }
  | {
      result: 'failed'
      outcome: AttemptOutcome
      nextAttemptAt: Date | null
      /** Why the webhook was disabled for it; null if it was not. */
      disabledFor: WebhookDisabled['reason'] | null
    }

/** Makes one attempt of a delivery and tells the log how it went. */
export class Attempts {
  constructor(private readonly options: AttemptsOptions) {}

  /**
   * Resolves once the log has been told. Rejects if it could not be, or the views can't say what to send: the
   * attempt is made (again) once its lease has ended. `onTaken` is called once the endpoint has taken it,
   * ahead of the record of that, with for how long it was waited for.
   */
  async make(delivery: Delivery, onTaken: (tookMs: number) => void): Promise<MadeAttempt> {
    const { bodies, secrets, sender, now } = this.options
    const webhook = await this.webhookOf(delivery)
    if (typeof webhook === 'string') return this.abandon(delivery, webhook)
    const body = await bodies.write(delivery)
    if ('gone' in body) return this.abandon(delivery, body.gone)
    const attemptedAt = now()
    let outcome: AttemptOutcome
    try {
      outcome = await sender.post({
        owner: webhook.accountId,
        url: secrets.openUrl(webhook.id, webhook.url),
        id: notificationIdOf(webhook.id, delivery.id, delivery.notification),
        body: body.json,
        secrets: secretsInForce(webhook, attemptedAt).map((sealed) => secrets.open(webhook.id, sealed)),
      })
    } finally {
      body.release()
    }
    // Of attempts that failed, those with a redirect alone have a status.
    const { status } = outcome
    const hasSucceeded = status !== null && status >= 200 && status < 300
    if (hasSucceeded) onTaken(outcome.tookMs)
    const facts = await this.factsOf(delivery, attemptedAt, outcome)
    if (hasSucceeded) {
      await this.record(delivery, { ...facts, type: 'DeliverySucceeded', status })
      return { result: 'succeeded', outcome }
    }
    const next = this.nextOf(delivery, facts.attempt, outcome)
    const error =
      outcome.kind === 'answered' ? `answered ${outcome.status}` : `${outcome.reason}: ${outcome.detail}`
    // Ahead of the attempt's record: of a process killed in between the attempt is made again, and finds it disabled.
    const isSample = delivery.notification.type === 'sample'
    const disabledFor = isSample ? null : await this.options.disabling.afterFailure(webhook, status)
    await this.record(delivery, { ...facts, type: 'DeliveryFailed', status, error, nextAttemptAt: next })
    return { result: 'failed', outcome, nextAttemptAt: next, disabledFor }
  }

  /** The webhook, or why nothing is sent to it. */
  private async webhookOf(delivery: Delivery): Promise<Webhook | DeliveryAbandoned['reason']> {
    const { webhookId, replayId, notification } = delivery
    const { webhooks, replays, views } = this.options
    const read = () => webhooks.webhook(webhookId)
    const webhook = (await read()) ?? (await views.readLatest('account-events', read))
    // Views that are being rebuilt may show it as it was before it was disabled.
    await views.requireComplete('account-events')
    if (webhook === null) return 'webhook-removed'
    if (webhook.state === 'disabled' && notification.type !== 'sample') return 'webhook-disabled'
    const replay = replayId === null ? null : await replays.replay({ webhookId, replayId })
    return replay !== null && stateOf(replay) === 'cancelled' ? 'replay-cancelled' : webhook
  }

  private nextOf(delivery: Delivery, attempt: number, outcome: AttemptOutcome): Date | null {
    // A sample says at once how it went.
    if (delivery.notification.type === 'sample' || outcome.status === GONE) return null
    const retryAfterMs = outcome.kind === 'answered' ? outcome.retryAfterMs : null
    return nextAttemptAt({ attempt, failedAt: this.options.now(), retryAfterMs, random: Math.random() })
  }

  /** An answer may repeat the mail: without the inbox's key, or where that is out of reach, it is not kept. */
  private async factsOf(
    { id: deliveryId, webhookId, attempts, notification }: Delivery,
    attemptedAt: Date,
    outcome: AttemptOutcome,
  ): Promise<AttemptFacts> {
    const attempt = attempts.length + 1
    const bytes = outcome.kind === 'answered' && outcome.answer.length > 0 ? outcome.answer : null
    const { inboxId } = notification
    const { vault } = this.options
    const found = bytes === null || inboxId === null ? null : await vault.find(inboxId).catch(() => null)
    const answer =
      bytes !== null && found?.state === 'known'
        ? seal(found.key, answerContext(deliveryId, attempt), bytes)
        : null
    const latencyMs = Math.round(outcome.latencyMs)
    return { webhookId, deliveryId, attempt, attemptedAt, latencyMs, answer }
  }

  private async abandon(delivery: Delivery, reason: DeliveryAbandoned['reason']): Promise<MadeAttempt> {
    const { id: deliveryId, webhookId } = delivery
    const abandonedAt = this.options.now()
    await this.record(delivery, { type: 'DeliveryAbandoned', webhookId, deliveryId, reason, abandonedAt })
    return { result: 'abandoned', reason }
  }

  private async record({ accountId, environment }: Delivery, event: DeliveryEvent): Promise<void> {
    await this.options.outcomes.record(event, { accountId, environment, keyId: null })
  }
}

/** What became of an attempt, as metrics and log lines have it. */
export type AttemptResult = 'succeeded' | 'failed' | 'abandoned' | 'unknown'

/** What the webhooks count. */
export class WebhookMetrics {
  readonly requested: Counter
  readonly disabled: Counter
  private readonly attempts: Counter<'result'>
  private readonly latency: Histogram
  private readonly lateness: Histogram
  private readonly underWay: Gauge

  /** `earliestDue`: when what has been due for longest was to be attempted; null if nothing is to be. */
  constructor(registry: Registry, earliestDue: () => Promise<Date | null>, now: () => Date) {
    const registers = [registry]
    new Gauge({
      name: 'mayfly_webhook_oldest_due_seconds',
      help: 'For how long the attempt that has waited longest has been due, under way or not; 0 where none is due.',
      registers,
      async collect() {
        const dueAt = await earliestDue().catch(() => undefined)
        if (dueAt === undefined) this.set(Number.NaN)
        else this.set(dueAt === null ? 0 : Math.max(now().getTime() - dueAt.getTime(), 0) / 1_000)
      },
    })
    this.requested = new Counter({
      name: 'mayfly_webhook_deliveries_requested_total',
      help: 'Deliveries that were asked for, those asked for again included.',
      registers,
    })
    this.disabled = new Counter({
      name: 'mayfly_webhooks_disabled_total',
      help: 'Webhooks disabled for how their endpoints answered.',
      registers,
    })
    this.attempts = new Counter({
      name: 'mayfly_webhook_attempts_total',
      help: 'Attempts to deliver, by what became of them.',
      labelNames: ['result'],
      registers,
    })
    for (const result of ['succeeded', 'failed', 'abandoned', 'unknown']) this.attempts.inc({ result }, 0)
    this.latency = new Histogram({
      name: 'mayfly_webhook_attempt_seconds',
      help: 'From the beginning of an attempt to its answer, or failure.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    })
    this.lateness = new Histogram({
      name: 'mayfly_webhook_attempt_lateness_seconds',
      help: 'From when an attempt was due to its beginning.',
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3_600],
      registers,
    })
    this.underWay = new Gauge({
      name: 'mayfly_webhook_attempts_under_way',
      help: 'Attempts that have begun and have not ended.',
      registers,
    })
  }

  begun(latenessMs: number): void {
    this.underWay.inc()
    this.lateness.observe(Math.max(latenessMs, 0) / 1_000)
  }

  ended(result: AttemptResult, latencyMs: number | null): void {
    this.underWay.dec()
    this.attempts.inc({ result })
    if (latencyMs !== null) this.latency.observe(latencyMs / 1_000)
  }
}
