import { idFromBytes, type DeliveryId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryEvent, DeliveryRequested, WebhookEvent } from '#libs/domain/webhook/events.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { beginViews, type StepOutcome, type ViewStore } from './view-store.js'
import { projectWebhookEvents, webhookRowsBefore } from './projections.js'
import { LOG_ID, PARTITIONS } from './read-model-harness.contract.js'

/** Some milliseconds after the start of the example, which is in the past. */
export function moment(ms: number): Date {
  return new Date(Date.UTC(2026, 0, 1) + ms)
}

/** The nth webhook id of a partition; ids grow with n. */
export function webhookIdIn(partition: number, n = 0): WebhookId {
  for (let salt = 0; ; salt += 1) {
    const bytes = Buffer.alloc(16)
    bytes.writeUInt32BE(n, 0)
    bytes.writeUInt32BE(salt, 12)
    const id = idFromBytes('whk', bytes)
    if (partitionOf(id, PARTITIONS) === partition) return id
  }
}

export function deliveryIdOf(n: number): DeliveryId {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(n, 12)
  return idFromBytes('dlv', bytes)
}

/** Requests the nth delivery, at a time in the example. */
export function requested(webhookId: WebhookId, n: number, atMs = 0): DeliveryRequested {
  const requestedAt = moment(atMs)
  const inboxId = idFromBytes('inb', Buffer.alloc(16, 7))
  const messageId = idFromBytes('msg', Buffer.alloc(16, n))
  return {
    ...{ type: 'DeliveryRequested', webhookId, deliveryId: deliveryIdOf(n), replayId: null, requestedAt },
    ...{ accountId: idFromBytes('acc', Buffer.alloc(16, 9)), environment: 'staging' },
    notification: { type: 'message.received', inboxId, messageId, occurredAt: requestedAt },
  }
}

/** The first attempt of the nth delivery, with the status of its response. */
export function answered(
  webhookId: WebhookId,
  n: number,
  { atMs = 0, status = 204, nextMs = null as number | null } = {},
): DeliveryEvent {
  const facts = {
    ...{ webhookId, deliveryId: deliveryIdOf(n), attempt: 1, attemptedAt: moment(atMs) },
    ...{ latencyMs: 3, answer: Buffer.from('sealed'), status },
  }
  if (status < 300) return { ...facts, type: 'DeliverySucceeded' }
  const nextAttemptAt = nextMs === null ? null : moment(nextMs)
  return { ...facts, type: 'DeliveryFailed', error: `answered ${status}`, nextAttemptAt }
}

/** Applies events of one partition of webhook-events, as the projector does. */
export class DeliveryFollower {
  private position = 0

  private constructor(
    private readonly store: ViewStore,
    private readonly partition: number,
  ) {}

  /** Begins the views of the partition. They are catching up if the log's end is later. */
  static async begin(
    store: ViewStore,
    partition: number,
    { logId = LOG_ID, end = 0 } = {},
  ): Promise<DeliveryFollower> {
    const follower = new DeliveryFollower(store, partition)
    const range = { topic: 'webhook-events', partition, first: 0, end } as const
    const log = layoutOf({ topology: () => Promise.resolve({ logId, partitions: [{ ...range }] }) })
    const { offset } = await beginViews(store, log, range)
    follower.position = offset
    return follower
  }

  /** Applies events in one step, with consecutive offsets, and advances. */
  async follow(...events: WebhookEvent[]): Promise<StepOutcome> {
    const { store, partition, position: from } = this
    const logged = events.map((event, index) => ({ offset: from + index, event }))
    const changes = projectWebhookEvents(await webhookRowsBefore(store, logged), logged)
    const to = from + events.length
    const outcome = await store.apply({ topic: 'webhook-events', partition, from, to, changes, contents: [] })
    if (outcome === 'applied') this.position = to
    return outcome
  }
}
