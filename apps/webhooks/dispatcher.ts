import { setTimeout as pause } from 'node:timers/promises'
import { largeCache } from '#libs/runtime/large-cache.js'
import type { Logger } from 'pino'
import type { AccountId, DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { progressChannel } from '#libs/ports/read-model/consistent-views.js'
import { DueClaims } from '#libs/ports/read-model/due-claims.js'
import type { DeliveryQueries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import { type Signals, Doorbell } from '#libs/ports/signals/signals.js'
import { AttemptSlots, type OwnedWebhook } from './attempt-slots.js'
import type { Attempts, CompletedAttempt } from './attempts.js'
import { Circuits } from './circuits.js'
import type { Outcomes } from './outcomes.js'
import type { WebhookMetrics } from './webhook-metrics.js'

export interface DispatcherOptions {
  deliveries: Pick<DeliveryQueries, 'dueWebhooks' | 'claimOf'>
  webhooks: Pick<WebhookQueries, 'webhook'>
  attempts: Pick<Attempts, 'make'>
  outcomes: Pick<Outcomes, 'isLogUnavailable' | 'giveUp'>
  signals: Signals
  log: LogLayout
  /** Attempts in progress, to all webhooks. */
  maxAttempts: number
  /** Attempts in progress, to one webhook. */
  maxPerWebhook: number
  /** The time in which an attempt must end and its outcome be visible; otherwise the delivery is claimed again. */
  leaseMs: number
  now: () => Date
  logger: Logger
  metrics: WebhookMetrics
}

/** The poll interval, for retries that become due: a new delivery sends a signal. */
const POLL_EVERY_MS = 500
/** The time between two claims, so that one claim takes several deliveries. */
const CLAIM_EVERY_MS = 5
const AFTER_ERROR_MS = 1_000
const MAX_REMEMBERED = 100_000

/** Claims due deliveries and attempts them concurrently, within the slots of each webhook and account. */
export class Dispatcher {
  private readonly bell = new Doorbell()
  private readonly inProgress = new Set<DeliveryId>()
  private readonly slots: AttemptSlots
  private readonly due: DueClaims
  private readonly circuits = new Circuits()
  private readonly accounts = largeCache<WebhookId, AccountId>(MAX_REMEMBERED)
  /** Attempts that this process has made of each delivery. The views may not have them yet when a lease expires. */
  private readonly attemptCounts = largeCache<DeliveryId, number>(MAX_REMEMBERED)
  private readonly unsubscribe: (() => void)[] = []
  private isStopping = false
  private loop: Promise<void> = Promise.resolve()

  constructor(private readonly options: DispatcherOptions) {
    this.due = new DueClaims(options.deliveries)
    this.slots = new AttemptSlots(options.maxAttempts, options.maxPerWebhook)
  }

  async start(): Promise<void> {
    const { signals, log } = this.options
    const topic = 'webhook-events'
    for (let partition = 0; partition < log.partitionCount(topic); partition += 1) {
      const end = await signals.subscribe(progressChannel({ topic, partition }), () => this.bell.ring())
      this.unsubscribe.push(end)
    }
    this.loop = this.run()
  }

  /** Resolves once the attempts in progress have ended and, unless the log is unavailable, are recorded. */
  async stop(): Promise<void> {
    this.isStopping = true
    for (const end of this.unsubscribe) end()
    this.bell.ring()
    await this.loop
    this.options.outcomes.giveUp()
    while (this.inProgress.size > 0) await this.bell.wait(POLL_EVERY_MS)
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      try {
        const hasMore = await this.claim()
        if (!hasMore) await this.bell.wait(POLL_EVERY_MS)
        await pause(CLAIM_EVERY_MS)
      } catch (error) {
        this.options.logger.error({ err: error }, 'claiming due deliveries failed: retrying')
        await this.bell.wait(AFTER_ERROR_MS)
      }
    }
  }

  /** Returns whether more deliveries may be due, and there is capacity for them. */
  private async claim(): Promise<boolean> {
    const { outcomes, maxAttempts, maxPerWebhook, leaseMs, now } = this.options
    if (outcomes.isLogUnavailable) return false
    const { limit: offered, capacityOf } = this.slots.offer()
    const limit = Math.min(offered, maxAttempts - this.inProgress.size)
    if (limit <= 0) return false
    const at = now()
    const limitOf = (id: WebhookId) => this.circuits.capacityOf(id, maxPerWebhook, at.getTime())
    const capacitiesOf = async (ids: readonly WebhookId[]) => {
      const owned = await Promise.all(ids.map((id) => this.ownedBy(id)))
      return owned.map((webhook) => (webhook === null ? 1 : capacityOf(webhook, limitOf(webhook.id))))
    }
    const rows = await this.due.claim({ now: at, leaseMs, limit, capacityOf: capacitiesOf })
    for (const row of rows) if (!this.isKnown(row)) void this.attempt(row.delivery)
    return rows.length === limit && this.slots.free > 0 && this.inProgress.size < maxAttempts
  }

  /** Null if the webhook has been removed: its deliveries are abandoned at once. */
  private async ownedBy(id: WebhookId): Promise<OwnedWebhook | null> {
    const accountId = this.accounts.get(id) ?? (await this.options.webhooks.webhook(id))?.accountId
    if (accountId === undefined) return null
    this.accounts.set(id, accountId)
    return { id, accountId }
  }

  private isKnown({ delivery: { id, attempts } }: DeliveryRow): boolean {
    return this.inProgress.has(id) || (this.attemptCounts.get(id) ?? 0) > attempts.length
  }

  private async attempt(delivery: Delivery): Promise<void> {
    const { id, webhookId, accountId, dueAt } = delivery
    const { attempts, now, metrics } = this.options
    this.inProgress.add(id)
    const releaseSlot = this.slots.take({ id: webhookId, accountId })
    metrics.inProgress.inc()
    const lateMs = dueAt === null ? 0 : now().getTime() - dueAt.getTime()
    metrics.lateness.observe(Math.max(lateMs, 0) / 1_000)
    try {
      // Release the slot as soon as the endpoint has accepted the delivery, before the outcome is recorded. After a
      // failure, release it only once the webhook's circuit has counted the failure.
      const completed = await attempts.make(delivery, (tookMs) => {
        this.slots.recordDuration(webhookId, tookMs)
        releaseSlot()
        this.bell.ring()
      })
      if (completed.result === 'failed') this.slots.recordDuration(webhookId, completed.outcome.tookMs)
      this.attemptCounts.set(delivery.id, delivery.attempts.length + 1)
      this.conclude(delivery, completed)
    } catch (error) {
      metrics.attempts.inc({ result: 'unknown' })
      this.options.logger.error(
        { err: error, deliveryId: id, webhookId },
        'the outcome of an attempt was not recorded: retrying once its lease has expired',
      )
    } finally {
      this.inProgress.delete(id)
      metrics.inProgress.dec()
      releaseSlot()
      this.bell.ring()
    }
  }

  private conclude(delivery: Delivery, completed: CompletedAttempt): void {
    const { metrics, logger, now } = this.options
    const { id: deliveryId, webhookId, notification } = delivery
    const fields = { deliveryId, webhookId, attempt: delivery.attempts.length + 1, result: completed.result }
    metrics.attempts.inc({ result: completed.result })
    if (completed.result === 'abandoned') {
      logger.info({ ...fields, reason: completed.reason }, 'delivery abandoned')
      return
    }
    const { status, latencyMs } = completed.outcome
    metrics.latency.observe(latencyMs / 1_000)
    const failure = completed.outcome.kind === 'failed' ? { reason: completed.outcome.reason } : {}
    const next = completed.result === 'failed' ? { nextAttemptAt: completed.nextAttemptAt } : {}
    logger.info({ ...fields, ...failure, ...next, status, latencyMs: Math.round(latencyMs) }, 'attempt made')
    if (completed.result === 'succeeded') {
      this.circuits.succeeded(webhookId)
      return
    }
    if (notification.type !== 'sample') this.circuits.failed(webhookId, now().getTime())
    if (completed.disabledFor === null) return
    metrics.disabled.inc()
    logger.warn({ webhookId, reason: completed.disabledFor }, 'webhook disabled')
  }
}
