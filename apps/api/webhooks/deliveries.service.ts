import { Inject, Injectable } from '@nestjs/common'
import Type from 'typebox'
import { list, named, object } from '#libs/domain/event-sourcing/declare.js'
import { isId, type InboxId } from '#libs/domain/ids/typeid.js'
import { DELIVERY_STATES, type Delivery } from '#libs/domain/webhook/delivery.js'
import { ABANDONED_FOR, WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import type { Engine } from '#libs/engines/engine.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { answerContext, unseal, type SecretKey } from '#libs/ports/key-vault/sealing.js'
import type { DeliveryListQuery } from '#libs/ports/read-model/delivery-views.js'
import type { DeliveryRow } from '#libs/ports/read-model/views.js'
import type { Principal } from '../access/principal.js'
import type { Minting } from '../idempotency/minting.js'
import { Views } from '../views.js'
import { VisibleRecorder } from '../visible-recorder.js'
import { notFound } from '../http/problems.js'
import { ENGINE, Instance } from '../instance.js'
import {
  Count,
  IdOf,
  OneOf,
  orNull,
  OrNull,
  resource,
  time,
  type ResourceJson,
} from '#libs/runtime/resource.js'

const attempt = object(
  {
    attemptedAt: named('time', time('When it started.')),
    status: OrNull(
      Type.Integer({ minimum: 100, maximum: 999 }),
      'The status that the endpoint answered; null if it did not answer.',
    ),
    latencyMs: Count('From its start to the answer or the failure.'),
    answer: OrNull(
      Type.String(),
      'The beginning of the answer, at most 1 kB, read as UTF-8; null if there was none, for a redirect, if there is no inbox, and after the inbox has ended.',
    ),
    error: OrNull(Type.String(), 'Why it failed; null if it succeeded.'),
  },
  { $id: 'Attempt', description: 'One POST to an endpoint.' },
)

const shown = resource(
  'Delivery',
  {
    description: 'An event for a webhook, and the attempts to deliver it.',
    examples: [
      {
        id: 'dlv_01jd6b90czf2jb8z0w6s8p1q3r',
        webhook_id: 'whk_01jd6b2k8nf3gq6r9t2w5y8z1c',
        event: 'message.received',
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        message_id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        domain_id: null,
        key_id: null,
        quota: null,
        replay_id: null,
        state: 'succeeded',
        abandoned_reason: null,
        created_at: '2026-11-21T09:30:02.431Z',
        next_attempt_at: null,
        attempts: [
          { time: '2026-11-21T09:30:02.446Z', status: 204, latency_ms: 12, answer: null, error: null },
        ],
      },
    ],
  },
  {
    id: IdOf('dlv', 'The id of the delivery.'),
    webhookId: IdOf('whk', 'The webhook.'),
    event: OneOf([...WEBHOOK_EVENT_TYPES, 'sample'], 'The event that is delivered.'),
    inboxId: OrNull(
      IdOf('inb', ''),
      'The inbox of the event; null for a sample, and for an event of a domain or a key.',
    ),
    messageId: OrNull(IdOf('msg', ''), 'The message of the event; null if the event is not about a message.'),
    domainId: OrNull(IdOf('dom', ''), 'The domain of the event; null if the event is not about a domain.'),
    keyId: OrNull(IdOf('key', ''), 'The key of the event; null if the event is not about a key.'),
    quota: OrNull(Type.String(), 'The quota of the event, if any.'),
    replayId: OrNull(IdOf('rpl', ''), 'The replay that it belongs to; null if it is not part of one.'),
    state: OneOf(
      DELIVERY_STATES,
      '`failed` if the last attempt failed; `abandoned` if there is nothing left to deliver.',
    ),
    abandonedFor: named('abandoned_reason', OrNull(OneOf(ABANDONED_FOR), 'Why it was abandoned.')),
    requestedAt: named('created_at', time('When it was requested.')),
    dueAt: named('next_attempt_at', orNull(time(''), 'When the next attempt is due; null if there is none.')),
    attempts: list(attempt, { description: 'All attempts, in their order.' }),
  },
)
export const DeliverySchema = shown.schema

/** The deliveries of webhooks. Callers must check access to the webhook with `Webhooks.find`. */
@Injectable()
export class Deliveries {
  constructor(
    private readonly views: Views,
    private readonly recorder: VisibleRecorder,
    private readonly instance: Instance,
    @Inject(ENGINE) private readonly engine: Pick<Engine, 'deliveries'>,
  ) {}

  /** Throws ViewsCatchingUpError if deliveries may be missing. */
  list(query: DeliveryListQuery): Promise<DeliveryRow[]> {
    return this.views.readComplete(query.webhookId, () => this.engine.deliveries.listDeliveries(query))
  }

  /** Throws not-found, and ViewsCatchingUpError if the delivery may still appear in the views. */
  async find({ id: webhookId }: Webhook, id: string): Promise<Delivery> {
    const { deliveries } = this.engine
    const row = isId('dlv', id)
      ? await this.views.find(webhookId, () => deliveries.delivery({ webhookId, deliveryId: id }))
      : null
    if (row === null) throw notFound(`There is no delivery ${id.slice(0, 60)} of this webhook.`)
    return row.delivery
  }

  /** Resolves once the log has the request to send a sample, and the views show its delivery. */
  async sendSample(webhook: Webhook, principal: Principal, minting: Minting): Promise<Delivery> {
    const { id: webhookId, accountId, environment } = webhook
    const requestedAt = this.instance.now()
    const deliveryId = minting.id('dlv')
    const notification = { type: 'sample', inboxId: null, messageId: null, occurredAt: requestedAt } as const
    const facts = { webhookId, deliveryId, accountId, environment, replayId: null, requestedAt, notification }
    await this.recorder.record([{ type: 'DeliveryRequested', ...facts }], principal)
    return this.find(webhook, deliveryId)
  }

  /** A delivery as JSON. The answers of endpoints are included, unless the key of the inbox is deleted. */
  async json(delivery: Delivery): Promise<ResourceJson> {
    const keys = await this.keysOf([delivery])
    return deliveryJson(delivery, keys)
  }

  /** Deliveries as JSON, in the same order, with answers as in `json`. */
  async listJson(deliveries: readonly Delivery[]): Promise<ResourceJson[]> {
    const keys = await this.keysOf(deliveries)
    return deliveries.map((delivery) => deliveryJson(delivery, keys))
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

function deliveryJson(delivery: Delivery, keys: ReadonlyMap<InboxId, SecretKey>): ResourceJson {
  const { inboxId, messageId, type: event } = delivery.notification
  const domainId = 'domainId' in delivery.notification ? delivery.notification.domainId : null
  const keyId = 'keyId' in delivery.notification ? delivery.notification.keyId : null
  const quota = 'quota' in delivery.notification ? delivery.notification.quota : null
  const key = inboxId === null ? undefined : keys.get(inboxId)
  const attempts = delivery.attempts.map(({ answer: sealed, ...attempt }, index) => {
    const context = answerContext(delivery.id, index + 1)
    const isReadable = key !== undefined && sealed !== null
    return { ...attempt, answer: isReadable ? unseal(key, context, sealed).toString().toWellFormed() : null }
  })
  return shown.json({ ...delivery, event, inboxId, messageId, domainId, keyId, quota, attempts })
}
