import { Injectable } from '@nestjs/common'
import type { Static } from 'typebox'
import { answerContext } from '#libs/ports/key-vault/content.js'
import { unseal, type SecretKey } from '#libs/ports/key-vault/seal.js'
import type { DeliveryListQuery } from '#libs/ports/read-model/queries.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import { isId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Principal } from '../access/authenticator.js'
import type { Minting } from '../access/minting.js'
import { Changes } from '../changes.js'
import { Instance } from '../instance.js'
import { notFound, type Problem } from '../http/problems.js'
import { Views } from '../http/views.js'
import type { DeliverySchema } from './delivery-schemas.js'
import { WebhookPorts } from './webhooks.service.js'

type DeliveryJson = Static<typeof DeliverySchema>

/** What became of what webhooks were to be told. Who may ask is checked with the webhook. */
@Injectable()
export class Deliveries {
  constructor(
    private readonly views: Views,
    private readonly changes: Changes,
    private readonly instance: Instance,
    private readonly ports: WebhookPorts,
  ) {}

  /** Throws catching-up if some may be missing. */
  list(query: DeliveryListQuery): Promise<DeliveryRow[]> {
    return this.views.readComplete(query.webhookId, () => this.ports.deliveries.listDeliveries(query))
  }

  /** Throws not-found, and catching-up if it may yet be there. */
  async find({ id: webhookId }: Webhook, id: string): Promise<Delivery> {
    const row = isId('dlv', id) ? await this.look(webhookId, id) : null
    if (row === null) throw noDelivery(id)
    return row.delivery
  }

  /** Resolves once a sample is sure to be sent, and can be looked at. */
  async sendSample(
    { id: webhookId, accountId, environment }: Webhook,
    principal: Principal,
    minting: Minting,
  ) {
    const requestedAt = this.instance.now()
    const deliveryId = minting.id('dlv')
    const type = 'DeliveryRequested'
    const notification = { type: 'sample', inboxId: null, messageId: null, occurredAt: requestedAt } as const
    const facts = { webhookId, deliveryId, accountId, environment, replayId: null, requestedAt, notification }
    await this.changes.record([{ type, ...facts }], principal)
    const row = await this.look(webhookId, deliveryId)
    if (row === null) throw noDelivery(deliveryId)
    return row.delivery
  }

  /** As the contract has them, with what endpoints answered as far as the keys of the inboxes are still there. */
  async json(deliveries: readonly Delivery[]): Promise<DeliveryJson[]> {
    const keys = await this.keysOf(deliveries)
    return deliveries.map((delivery) => {
      const { inboxId } = delivery.notification
      return deliveryJson(delivery, inboxId === null ? null : (keys.get(inboxId) ?? null))
    })
  }

  private look(webhookId: WebhookId, deliveryId: Delivery['id']): Promise<DeliveryRow | null> {
    return this.views.find(webhookId, () => this.ports.deliveries.delivery({ webhookId, deliveryId }))
  }

  private async keysOf(deliveries: readonly Delivery[]): Promise<Map<InboxId, SecretKey>> {
    const answered = deliveries.filter(({ attempts }) => attempts.some(({ answer }) => answer !== null))
    const ids = new Set(answered.flatMap(({ notification }) => notification.inboxId ?? []))
    const keys = new Map<InboxId, SecretKey>()
    await Promise.all(
      [...ids].map(async (id) => {
        const found = await this.views.vault.find(id)
        if (found.state === 'known') keys.set(id, found.key)
      }),
    )
    return keys
  }
}

function deliveryJson(delivery: Delivery, key: SecretKey | null): DeliveryJson {
  const { notification } = delivery
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event: notification.type,
    inbox_id: notification.inboxId,
    message_id: notification.messageId,
    replay_id: delivery.replayId,
    state: delivery.state,
    abandoned_reason: delivery.abandonedFor,
    created_at: delivery.requestedAt.toISOString(),
    next_attempt_at: delivery.dueAt?.toISOString() ?? null,
    attempts: delivery.attempts.map(({ attemptedAt, status, latencyMs, answer, error }, index) => ({
      time: attemptedAt.toISOString(),
      status,
      latency_ms: latencyMs,
      answer:
        key === null || answer === null
          ? null
          : unseal(key, answerContext(delivery.id, index + 1), answer)
              .toString()
              .toWellFormed(),
      error,
    })),
  }
}

function noDelivery(id: string): Problem {
  return notFound(`There is no delivery ${id.slice(0, 60)} of this webhook.`)
}
