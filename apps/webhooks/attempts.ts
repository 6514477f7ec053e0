import { answerContext } from '#libs/ports/key-vault/content.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { seal } from '#libs/ports/key-vault/seal.js'
import type { WebhookSecrets } from '#libs/ports/key-vault/webhook-secrets.js'
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
  /** At least 0, less than 1. */
  random: () => number
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
    if (await this.isCancelled(delivery)) return this.abandon(delivery, 'replay-cancelled')
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
    const success = successOf(outcome)
    if (success !== null) onTaken(outcome.tookMs)
    const facts = await this.factsOf(delivery, attemptedAt, outcome)
    if (success !== null) {
      await this.record(delivery, { ...facts, type: 'DeliverySucceeded', status: success.status })
      return { result: 'succeeded', outcome }
    }
    const { status } = outcome
    const next = this.nextOf(delivery, facts.attempt, outcome)
    const error =
      outcome.kind === 'answered' ? `answered ${outcome.status}` : `${outcome.reason}: ${outcome.detail}`
    // Ahead of the attempt's record: of a process killed in between the attempt is made again, and finds it disabled.
    const isSample = delivery.notification.type === 'sample'
    const disabledFor = isSample ? null : await this.options.disabling.afterFailure(webhook, status)
    await this.record(delivery, { ...facts, type: 'DeliveryFailed', status, error, nextAttemptAt: next })
    return { result: 'failed', outcome, nextAttemptAt: next, disabledFor }
  }

  private async webhookOf({
    webhookId,
    notification,
  }: Delivery): Promise<Webhook | DeliveryAbandoned['reason']> {
    const { webhooks, views } = this.options
    const read = () => webhooks.webhook(webhookId)
    const webhook = (await read()) ?? (await views.readLatest('account-events', read))
    // Views that are being rebuilt may show it as it was before it was disabled.
    await views.requireComplete('account-events')
    if (webhook === null) return 'webhook-removed'
    const isToBeTold = webhook.state === 'active' || notification.type === 'sample'
    return isToBeTold ? webhook : 'webhook-disabled'
  }

  private async isCancelled({ webhookId, replayId }: Delivery): Promise<boolean> {
    if (replayId === null) return false
    const replay = await this.options.replays.replay({ webhookId, replayId })
    return replay !== null && stateOf(replay) === 'cancelled'
  }

  private nextOf(delivery: Delivery, attempt: number, outcome: AttemptOutcome): Date | null {
    const { now, random } = this.options
    // A sample says at once how it went.
    if (delivery.notification.type === 'sample' || outcome.status === GONE) return null
    const retryAfterMs = outcome.kind === 'answered' ? outcome.retryAfterMs : null
    return nextAttemptAt({ attempt, failedAt: now(), retryAfterMs, random: random() })
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

type Success = Extract<AttemptOutcome, { kind: 'answered' }>

function successOf(outcome: AttemptOutcome): Success | null {
  return outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300 ? outcome : null
}
