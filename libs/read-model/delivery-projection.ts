import type { DeliveryId, WebhookId } from '#libs/typeid/typeid.js'
import type { DeliveryEvent } from '#libs/webhook/delivery-events.js'
import { evolve, type Delivery } from '#libs/webhook/delivery.js'
import type { DeliveryKey } from './projection-store.js'
import type { Change, DeliveryRow, WebhookHealth } from './views.js'

/** The rows that a run of events concerns, as they stood before it. */
export interface DeliveryRows {
  deliveries: ReadonlyMap<DeliveryId, DeliveryRow>
  health: ReadonlyMap<WebhookId, WebhookHealth>
}

/** An event and where it stands in its partition of webhook-events. */
export interface PlacedDeliveryEvent {
  offset: number
  event: DeliveryEvent
}

/** The rows that must be known to project a run of events. */
export function deliveryRowsConcerned(events: readonly PlacedDeliveryEvent[]): {
  deliveryKeys: DeliveryKey[]
  webhookIds: WebhookId[]
} {
  const byId = new Map(events.map(({ event }) => [event.deliveryId, event]))
  const webhookIds = new Set(events.map(({ event }) => event.webhookId))
  return { deliveryKeys: [...byId.values()], webhookIds: [...webhookIds] }
}

/** What a run of one partition's events changes in the views: each row once, as the run leaves it. */
export function projectDeliveryEvents(
  before: DeliveryRows,
  events: readonly PlacedDeliveryEvent[],
): Change[] {
  const rows = new Map<DeliveryId, DeliveryRow>()
  const health = new Map<WebhookId, WebhookHealth>()
  for (const { offset, event } of events) {
    const { deliveryId, webhookId } = event
    const row = rows.get(deliveryId) ?? before.deliveries.get(deliveryId)
    const delivery = evolve(row?.delivery ?? null, event)
    if (delivery === null || delivery === row?.delivery) continue
    rows.set(deliveryId, { delivery, offset: row?.offset ?? offset })
    const known = health.get(webhookId) ?? before.health.get(webhookId) ?? { webhookId, failingSince: null }
    health.set(webhookId, { webhookId, failingSince: failingSince(known, event, delivery) })
  }
  const changed = [...health.values()].filter((each) => isOther(each, before.health.get(each.webhookId)))
  return [
    ...[...rows.values()].map((row): Change => {
      const previous = before.deliveries.get(row.delivery.id)?.delivery ?? null
      return { type: 'put-delivery', row, previous }
    }),
    ...changed.map((each): Change => ({ type: 'put-webhook-health', health: each })),
  ]
}

/** What is tried with a sample says nothing of how mail is told. */
function failingSince(known: WebhookHealth, event: DeliveryEvent, { notification }: Delivery): Date | null {
  if (notification.type === 'sample') return known.failingSince
  if (event.type === 'DeliverySucceeded') return null
  if (event.type === 'DeliveryFailed') return known.failingSince ?? event.attemptedAt
  return known.failingSince
}

function isOther(one: WebhookHealth, other: WebhookHealth | undefined): boolean {
  return other === undefined || one.failingSince?.getTime() !== other.failingSince?.getTime()
}
