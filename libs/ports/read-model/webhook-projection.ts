import type { DeliveryId, ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { WebhookEvent, DeliveryEvent } from '#libs/domain/webhook/webhook-events.js'
import { evolve as evolveDelivery, type Delivery } from '#libs/domain/webhook/delivery.js'
import { countDelivery, evolve as evolveReplay, type Replay } from '#libs/domain/webhook/replay.js'
import type { DeliveryKey, ProjectionStore, ReplayKey } from './projection-store.js'
import type { Change, DeliveryRow, WebhookHealth } from './views.js'

/** The rows that a run of events concerns, as they stood before it. */
export interface WebhookRows {
  deliveries: ReadonlyMap<DeliveryId, DeliveryRow>
  replays: ReadonlyMap<ReplayId, Replay>
  health: ReadonlyMap<WebhookId, WebhookHealth>
}

/** An event and where it stands in its partition of webhook-events. */
export interface PlacedWebhookEvent {
  offset: number
  event: WebhookEvent
}

/** Reads the rows that must be known to project a run of events. */
export async function webhookRowsBefore(
  store: Pick<ProjectionStore, 'deliveries' | 'replays' | 'webhookHealth'>,
  events: readonly PlacedWebhookEvent[],
): Promise<WebhookRows> {
  const webhookIds = new Set(events.map(({ event }) => event.webhookId))
  const [found, health] = await Promise.all([
    store.deliveries(deliveriesConcerned(events)),
    store.webhookHealth([...webhookIds]),
  ])
  const deliveries = found.filter((row) => row !== null)
  const replayKeys = replaysConcerned(events, deliveries)
  const replays = replayKeys.length === 0 ? [] : await store.replays(replayKeys)
  return {
    deliveries: new Map(deliveries.map((row) => [row.delivery.id, row])),
    replays: new Map(replays.flatMap((row) => (row === null ? [] : [[row.id, row]]))),
    health: new Map(health.flatMap((row) => (row === null ? [] : [[row.webhookId, row]]))),
  }
}

function deliveriesConcerned(events: readonly PlacedWebhookEvent[]): DeliveryKey[] {
  const found = new Map<DeliveryId, DeliveryKey>()
  for (const { event } of events) if ('deliveryId' in event) found.set(event.deliveryId, event)
  return [...found.values()]
}

/** The replays of the events themselves, and those that the deliveries belong to. */
function replaysConcerned(
  events: readonly PlacedWebhookEvent[],
  deliveries: readonly DeliveryRow[],
): ReplayKey[] {
  const found = new Map<ReplayId, ReplayKey>()
  for (const each of [...events.map(({ event }) => event), ...deliveries.map(({ delivery }) => delivery)]) {
    const replayId = 'replayId' in each ? each.replayId : null
    if (replayId !== null) found.set(replayId, { webhookId: each.webhookId, replayId })
  }
  return [...found.values()]
}

/** What a run of one partition's events changes in the views: each row once, as the run leaves it. */
export function projectWebhookEvents(before: WebhookRows, events: readonly PlacedWebhookEvent[]): Change[] {
  const deliveries = new Map(before.deliveries)
  const replays = new Map(before.replays)
  const health = new Map(before.health)

  for (const { offset, event } of events) {
    const { webhookId } = event
    const known = health.get(webhookId) ?? { webhookId, failingSince: null }
    if ('deliveryId' in event) {
      const row = deliveries.get(event.deliveryId)
      const previous = row?.delivery ?? null
      const delivery = evolveDelivery(previous, event)
      if (delivery === null || delivery === previous) continue
      deliveries.set(event.deliveryId, { delivery, offset: row?.offset ?? offset })
      health.set(webhookId, { webhookId, failingSince: failingSince(known, event, delivery) })
      const replay = delivery.replayId === null ? undefined : replays.get(delivery.replayId)
      if (replay !== undefined) replays.set(replay.id, countDelivery(replay, previous, delivery))
    } else {
      const previous = replays.get(event.replayId) ?? null
      const replay = evolveReplay(previous, event)
      if (replay === null || replay === previous) continue
      replays.set(event.replayId, replay)
      // Through it the views find all that a webhook has.
      health.set(webhookId, known)
    }
  }

  const changes: Change[] = []
  for (const [id, row] of deliveries) {
    const previous = before.deliveries.get(id)
    if (row !== previous) changes.push({ type: 'put-delivery', row, previous: previous?.delivery ?? null })
  }
  for (const [id, replay] of replays) {
    const previous = before.replays.get(id) ?? null
    if (replay !== previous) changes.push({ type: 'put-replay', replay, previous })
  }
  for (const [id, each] of health) {
    if (isOther(each, before.health.get(id))) changes.push({ type: 'put-webhook-health', health: each })
  }
  return changes
}

/** A sample says nothing about how notifications of mail are delivered. */
function failingSince(known: WebhookHealth, event: DeliveryEvent, { notification }: Delivery): Date | null {
  if (notification.type === 'sample') return known.failingSince
  if (event.type === 'DeliverySucceeded') return null
  if (event.type === 'DeliveryFailed') return known.failingSince ?? event.attemptedAt
  return known.failingSince
}

function isOther(one: WebhookHealth, other: WebhookHealth | undefined): boolean {
  return other === undefined || one.failingSince?.getTime() !== other.failingSince?.getTime()
}
