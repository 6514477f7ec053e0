import { setTimeout as pause } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { DueClaims } from '#libs/ports/read-model/due-claims.js'
import type { DueDeliveries, WebhookQueries } from '#libs/ports/read-model/queries.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import { movedChannel } from '#libs/ports/read-model/consistent-views.js'
import { type Signals, Doorbell } from '#libs/ports/signals/signals.js'
import type { AccountId, DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Attempts, MadeAttempt, WebhookMetrics } from './attempts.js'
import { AttemptSlots, type Owned, Circuits } from './attempt-slots.js'
import type { Outcomes } from './outcomes.js'

export interface DispatcherOptions {
  deliveries: Pick<DueDeliveries, 'dueWebhooks' | 'claimOf'>
  webhooks: Pick<WebhookQueries, 'webhook'>
  attempts: Pick<Attempts, 'make'>
  outcomes: Pick<Outcomes, 'isLogAway' | 'giveUp'>
  signals: Signals
  log: LogLayout
  /** Attempts under way at most. */
  mostAttempts: number
  /** The same to one webhook. */
  mostOfWebhook: number
  /** In which an attempt is over and on the log, or is made again. */
  leaseMs: number
  now: () => Date
  logger: Logger
  metrics: WebhookMetrics
}

/** What becomes due without a signal is found so soon. */
const LOOK_EVERY_MS = 500
/** Claims apart: what comes in between goes along. */
const GATHER_MS = 5
const AFTER_ERROR_MS = 1_000
const MAX_REMEMBERED = 100_000

/** Claims what is due and has it attempted, many at once, none of them in another webhook's way. */
export class Dispatcher {
  private readonly bell = new Doorbell()
  private readonly underWay = new Set<DeliveryId>()
  private readonly slots: AttemptSlots
  private readonly due: DueClaims
  private readonly circuits = new Circuits()
  private readonly accounts = new LRUCache<WebhookId, AccountId>({ max: MAX_REMEMBERED })
  /** How many attempts of a delivery this process has made: the views may not show the last one when its lease ends. */
  private readonly made = new LRUCache<DeliveryId, number>({ max: MAX_REMEMBERED })
  private readonly unsubscribe: (() => void)[] = []
  private isStopping = false
  private loop: Promise<void> = Promise.resolve()

  constructor(private readonly options: DispatcherOptions) {
    this.due = new DueClaims(options.deliveries)
    this.slots = new AttemptSlots(options.mostAttempts, options.mostOfWebhook)
  }

  async start(): Promise<void> {
    const { signals, log } = this.options
    const topic = 'webhook-events'
    for (let partition = 0; partition < log.partitionCount(topic); partition += 1) {
      const end = await signals.subscribe(movedChannel({ topic, partition }), () => this.bell.ring())
      this.unsubscribe.push(end)
    }
    this.loop = this.run()
  }

  /** Resolves once the attempts under way are over, and on the log unless that is away. */
  async stop(): Promise<void> {
    this.isStopping = true
    for (const end of this.unsubscribe) end()
    this.bell.ring()
    await this.loop
    this.options.outcomes.giveUp()
    while (this.underWay.size > 0) await this.bell.wait(LOOK_EVERY_MS)
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      try {
        const isMore = await this.claim()
        if (!isMore) await this.bell.wait(LOOK_EVERY_MS)
        await pause(GATHER_MS)
      } catch (error) {
        this.options.logger.error({ err: error }, 'due deliveries could not be claimed: tried again')
        await this.bell.wait(AFTER_ERROR_MS)
      }
    }
  }

  /** Whether more may be due, and there is capacity for it. */
  private async claim(): Promise<boolean> {
    const { outcomes, mostAttempts, mostOfWebhook, leaseMs, now } = this.options
    if (outcomes.isLogAway) return false
    const { limit: offered, capacityOf } = this.slots.offer()
    const limit = Math.min(offered, mostAttempts - this.underWay.size)
    if (limit <= 0) return false
    const at = now()
    const mostOf = (id: WebhookId) => this.circuits.capacityOf(id, mostOfWebhook, at.getTime())
    const capacitiesOf = async (ids: readonly WebhookId[]) => {
      const owned = await Promise.all(ids.map((id) => this.ownedBy(id)))
      return owned.map((webhook) => (webhook === null ? 1 : capacityOf(webhook, mostOf(webhook.id))))
    }
    const rows = await this.due.claim({ now: at, leaseMs, limit, capacityOf: capacitiesOf })
    for (const row of rows) if (!this.isKnown(row)) void this.attempt(row.delivery)
    return rows.length === limit && this.slots.free > 0 && this.underWay.size < mostAttempts
  }

  /** Null for a webhook that has been removed: its deliveries are given up at once. */
  private async ownedBy(id: WebhookId): Promise<Owned | null> {
    const accountId = this.accounts.get(id) ?? (await this.options.webhooks.webhook(id))?.accountId
    if (accountId === undefined) return null
    this.accounts.set(id, accountId)
    return { id, accountId }
  }

  private isKnown({ delivery: { id, attempts } }: DeliveryRow): boolean {
    return this.underWay.has(id) || (this.made.get(id) ?? 0) > attempts.length
  }

  private async attempt(delivery: Delivery): Promise<void> {
    const { id, webhookId, accountId, dueAt } = delivery
    const { attempts, now, metrics } = this.options
    this.underWay.add(id)
    const leave = this.slots.take({ id: webhookId, accountId })
    metrics.begun(now().getTime() - (dueAt ?? now()).getTime())
    try {
      // The slot is left as soon as the endpoint has taken the delivery, before the log has its outcome. After a
      // failure it is not, so that its circuit is known first.
      const made = await attempts.make(delivery, (tookMs) => {
        this.slots.learn(webhookId, tookMs)
        leave()
        this.bell.ring()
      })
      if (made.result === 'failed') this.slots.learn(webhookId, made.outcome.tookMs)
      this.made.set(delivery.id, delivery.attempts.length + 1)
      this.conclude(delivery, made)
    } catch (error) {
      metrics.ended('unknown', null)
      this.options.logger.error(
        { err: error, deliveryId: id, webhookId },
        'what became of an attempt is not on the log: made again once its lease has ended',
      )
    } finally {
      this.underWay.delete(id)
      leave()
      this.bell.ring()
    }
  }

  private conclude(delivery: Delivery, made: MadeAttempt): void {
    const { metrics, logger, now } = this.options
    const { id: deliveryId, webhookId, notification } = delivery
    const facts = { deliveryId, webhookId, attempt: delivery.attempts.length + 1, result: made.result }
    if (made.result === 'abandoned') {
      metrics.ended(made.result, null)
      logger.info({ ...facts, reason: made.reason }, 'delivery abandoned')
      return
    }
    const { status, latencyMs } = made.outcome
    metrics.ended(made.result, latencyMs)
    const failure = made.outcome.kind === 'failed' ? { reason: made.outcome.reason } : {}
    const next = made.result === 'failed' ? { nextAttemptAt: made.nextAttemptAt } : {}
    logger.info({ ...facts, ...failure, ...next, status, latencyMs: Math.round(latencyMs) }, 'attempt made')
    if (made.result === 'succeeded') {
      this.circuits.succeeded(webhookId)
      return
    }
    if (notification.type !== 'sample') this.circuits.failed(webhookId, now().getTime())
    if (made.disabledFor === null) return
    metrics.disabled.inc()
    logger.warn({ webhookId, reason: made.disabledFor }, 'webhook disabled')
  }
}
