import type { DeliveryId, ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { WebhookEvent, DeliveryEvent, ReplayEvent } from '#libs/domain/webhook/webhook-events.js'
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
  for (const { event } of events) {
    const replayId = 'replayId' in event ? event.replayId : null
    if (replayId !== null) found.set(replayId, { webhookId: event.webhookId, replayId })
  }
  for (const { delivery } of deliveries) {
    const { webhookId, replayId } = delivery
    if (replayId !== null) found.set(replayId, { webhookId, replayId })
  }
  return [...found.values()]
}

/** What a run of one partition's events changes in the views: each row once, as the run leaves it. */
export function projectWebhookEvents(before: WebhookRows, events: readonly PlacedWebhookEvent[]): Change[] {
  const projection = new Projection(before)
  for (const { offset, event } of events) {
    if ('deliveryId' in event) projection.delivery(offset, event)
    else projection.replay(event)
  }
  return projection.changes()
}

class Projection {
  private readonly deliveries = new Map<DeliveryId, DeliveryRow>()
  private readonly replays = new Map<ReplayId, Replay>()
  private readonly health = new Map<WebhookId, WebhookHealth>()

  constructor(private readonly before: WebhookRows) {}

  delivery(offset: number, event: DeliveryEvent): void {
    const { deliveryId, webhookId } = event
    const row = this.deliveries.get(deliveryId) ?? this.before.deliveries.get(deliveryId)
    const previous = row?.delivery ?? null
    const delivery = evolveDelivery(previous, event)
    if (delivery === null || delivery === previous) return
    this.deliveries.set(deliveryId, { delivery, offset: row?.offset ?? offset })
    const known = this.healthOf(webhookId)
    this.health.set(webhookId, { webhookId, failingSince: failingSince(known, event, delivery) })
    const replay = delivery.replayId === null ? null : this.replayOf(delivery.replayId)
    if (replay !== null) this.replays.set(replay.id, countDelivery(replay, previous, delivery))
  }

  replay(event: ReplayEvent): void {
    const { replayId, webhookId } = event
    const previous = this.replayOf(replayId)
    const replay = evolveReplay(previous, event)
    if (replay === null || replay === previous) return
    this.replays.set(replayId, replay)
    // Through it the views find all that a webhook has.
    this.health.set(webhookId, this.healthOf(webhookId))
  }

  changes(): Change[] {
    const { before } = this
    const changed = [...this.health.values()].filter((each) =>
      isOther(each, before.health.get(each.webhookId)),
    )
    return [
      ...[...this.deliveries.values()].map((row): Change => {
        const previous = before.deliveries.get(row.delivery.id)?.delivery ?? null
        return { type: 'put-delivery', row, previous }
      }),
      ...[...this.replays.values()].map((replay): Change => {
        return { type: 'put-replay', replay, previous: before.replays.get(replay.id) ?? null }
      }),
      ...changed.map((each): Change => ({ type: 'put-webhook-health', health: each })),
    ]
  }

  private healthOf(webhookId: WebhookId): WebhookHealth {
    return (
      this.health.get(webhookId) ?? this.before.health.get(webhookId) ?? { webhookId, failingSince: null }
    )
  }

  private replayOf(id: ReplayId): Replay | null {
    return this.replays.get(id) ?? this.before.replays.get(id) ?? null
  }
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
