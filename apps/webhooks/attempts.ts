import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { nextAttemptAt } from '#libs/domain/webhook/retry-schedule.js'
import type {
  WebhookDisabled,
  AttemptFacts,
  DeliveryAbandoned,
  DeliveryEvent,
} from '#libs/domain/webhook/events.js'
import { stateOf } from '#libs/domain/webhook/replay.js'
import { type Webhook, signingSecrets } from '#libs/domain/webhook/webhook.js'
import { answerContext, seal } from '#libs/ports/key-vault/sealing.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { WebhookSecrets } from '#libs/ports/key-vault/master-key.js'
import type { PersonalData } from '#libs/ports/key-vault/personal-data.js'
import type { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import type { ReplayQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import { mainThread } from '#libs/runtime/fairness/time-shares.js'
import { notificationIdOf } from './matching.js'
import type { NotificationBodies, NotificationBody } from './notification-body.js'
import { GONE, type Outcomes } from './outcomes.js'
import type { AttemptOutcome } from './sender/exchange.js'
import type { WebhookSender } from './sender/webhook-sender.js'

export interface AttemptsOptions {
  webhooks: Pick<WebhookQueries, 'webhook'>
  replays: Pick<ReplayQueries, 'replay'>
  views: Pick<ConsistentViews, 'readLatest' | 'requireComplete'>
  vault: Pick<KeyVault, 'find'>
  secrets: Pick<WebhookSecrets, 'openSecret'>
  personal: Pick<PersonalData, 'openUrl'>
  bodies: NotificationBodies
  sender: Pick<WebhookSender, 'post'>
  outcomes: Pick<Outcomes, 'record' | 'disableAfterFailure'>
  now: () => Date
}

/** An attempt whose outcome is on the log. */
export type CompletedAttempt =
  | { result: 'abandoned'; reason: DeliveryAbandoned['reason'] }
  | { result: 'succeeded'; outcome: AttemptOutcome }
  | {
      result: 'failed'
      outcome: AttemptOutcome
      nextAttemptAt: Date | null
      /** Why the webhook was disabled after the attempt; null if it was not. */
      disabledFor: WebhookDisabled['reason'] | null
    }

/**
 * Attempts of an account that are prepared or recorded at once while others have work. They mostly wait for the views and
 * the log, which writes many records in one batch.
 */
const AT_ONCE = 32

interface Prepared {
  webhook: Webhook
  url: string
  body: Exclude<NotificationBody, { gone: unknown }>
}

/** Attempts a delivery and records the outcome on the log. */
export class Attempts {
  constructor(private readonly options: AttemptsOptions) {}

  /**
   * Resolves once the outcome is on the log. Rejects if it could not be recorded, or if the views don't know what to
   * send: then the delivery is attempted again once its lease has expired. `onAccepted` is called when the endpoint has
   * accepted the delivery, before the outcome is recorded, with the time that the endpoint took.
   */
  async make(delivery: Delivery, onAccepted: (tookMs: number) => void): Promise<CompletedAttempt> {
    const { secrets, sender, now } = this.options
    const endTurn = await mainThread.take(delivery.accountId, AT_ONCE)
    const prepared = await this.prepare(delivery).finally(endTurn)
    if (typeof prepared === 'string') return this.abandon(delivery, prepared)
    const { webhook, url, body } = prepared
    const attemptedAt = now()
    let outcome: AttemptOutcome
    try {
      outcome = await sender.post({
        owner: webhook.accountId,
        url,
        id: notificationIdOf(webhook.id, delivery.id, delivery.notification),
        body: body.json,
        secrets: signingSecrets(webhook, attemptedAt).map((sealed) => secrets.openSecret(webhook.id, sealed)),
      })
    } finally {
      body.release()
    }
    // Of failed attempts only those that got a redirect have a status.
    const { status } = outcome
    const hasSucceeded = status !== null && status >= 200 && status < 300
    using stack = new DisposableStack()
    stack.defer(await mainThread.take(delivery.accountId, AT_ONCE))
    if (hasSucceeded) onAccepted(outcome.tookMs)
    const facts = await this.factsOf(delivery, attemptedAt, outcome)
    if (hasSucceeded) {
      await this.record(delivery, { ...facts, type: 'DeliverySucceeded', status })
      return { result: 'succeeded', outcome }
    }
    const next = this.nextOf(delivery, facts.attempt, outcome)
    const error =
      outcome.kind === 'answered' ? `answered ${outcome.status}` : `${outcome.reason}: ${outcome.detail}`
    // Before the outcome is recorded: if the process is killed in between, the next attempt finds the webhook disabled.
    const isSample = delivery.notification.type === 'sample'
    const disabledFor = isSample ? null : await this.options.outcomes.disableAfterFailure(webhook, status)
    await this.record(delivery, { ...facts, type: 'DeliveryFailed', status, error, nextAttemptAt: next })
    return { result: 'failed', outcome, nextAttemptAt: next, disabledFor }
  }

  /** What is sent, and to which webhook, or why the delivery is abandoned. */
  private async prepare(delivery: Delivery): Promise<Prepared | DeliveryAbandoned['reason']> {
    const webhook = await this.webhookOf(delivery)
    if (typeof webhook === 'string') return webhook
    const url = await this.options.personal.openUrl(webhook)
    // Its account is closed.
    if (url === null) return 'webhook-removed'
    const body = await this.options.bodies.write(delivery)
    return 'gone' in body ? body.gone : { webhook, url, body }
  }

  /** The webhook, or why the delivery is abandoned. */
  private async webhookOf(delivery: Delivery): Promise<Webhook | DeliveryAbandoned['reason']> {
    const { webhookId, replayId, notification } = delivery
    const { webhooks, replays, views } = this.options
    const read = () => webhooks.webhook(webhookId)
    const webhook = (await read()) ?? (await views.readLatest('account-events', read))
    // Views that are being rebuilt may show the webhook as it was before it was disabled.
    await views.requireComplete('account-events')
    if (webhook === null) return 'webhook-removed'
    if (webhook.state === 'disabled' && notification.type !== 'sample') return 'webhook-disabled'
    const replay = replayId === null ? null : await replays.replay({ webhookId, replayId })
    return replay !== null && stateOf(replay) === 'cancelled' ? 'replay-cancelled' : webhook
  }

  private nextOf(delivery: Delivery, attempt: number, outcome: AttemptOutcome): Date | null {
    // A sample is attempted once, so that its result is known at once.
    if (delivery.notification.type === 'sample' || outcome.status === GONE) return null
    const retryAfterMs = outcome.kind === 'answered' ? outcome.retryAfterMs : null
    return nextAttemptAt({ attempt, failedAt: this.options.now(), retryAfterMs, random: Math.random() })
  }

  /** A response may quote the mail, so it is stored sealed with the inbox's key, or not at all if there is no key. */
  private async factsOf(
    { id: deliveryId, webhookId, attempts, notification }: Delivery,
    attemptedAt: Date,
    outcome: AttemptOutcome,
  ): Promise<AttemptFacts> {
    const attempt = attempts.length + 1
    const bytes = outcome.kind === 'answered' && outcome.answer.length > 0 ? outcome.answer : null
    const { inboxId } = notification
    const { vault } = this.options
    // Whatever the reason of a failure: the attempt was made, so its outcome must be recorded.
    const found = bytes === null || inboxId === null ? null : await vault.find(inboxId).catch(() => null)
    const answer =
      bytes !== null && found?.state === 'known'
        ? seal(found.key, answerContext(deliveryId, attempt), bytes)
        : null
    const latencyMs = Math.round(outcome.latencyMs)
    return { webhookId, deliveryId, attempt, attemptedAt, latencyMs, answer }
  }

  private async abandon(delivery: Delivery, reason: DeliveryAbandoned['reason']): Promise<CompletedAttempt> {
    const { id: deliveryId, webhookId } = delivery
    const abandonedAt = this.options.now()
    await this.record(delivery, { type: 'DeliveryAbandoned', webhookId, deliveryId, reason, abandonedAt })
    return { result: 'abandoned', reason }
  }

  private async record({ accountId, environment }: Delivery, event: DeliveryEvent): Promise<void> {
    await this.options.outcomes.record(event, { accountId, environment, keyId: null })
  }
}
