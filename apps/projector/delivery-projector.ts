import type { DecodedBatch } from '#libs/event-log/decode-batch.js'
import type { RecordBatch } from '#libs/event-log/event-log.js'
import {
  deliveryRowsConcerned,
  projectDeliveryEvents,
  type DeliveryRows,
  type PlacedDeliveryEvent,
} from '#libs/read-model/delivery-projection.js'
import type { ProjectionStore, StepOutcome } from '#libs/read-model/projection-store.js'
import type { DeliveryEvent } from '#libs/webhook/delivery-events.js'

/** Turns a run of a partition's deliveries into one step of the views. */
export class DeliveryProjector {
  constructor(private readonly store: ProjectionStore) {}

  /** Resolves once the views show the events, or the store has said that it stands elsewhere. */
  async project(
    { topic, partition, from }: RecordBatch,
    { events: decoded, next: to }: DecodedBatch<DeliveryEvent>,
  ): Promise<StepOutcome> {
    const events = decoded.map(({ offset, recorded: { event } }) => ({ offset, event }))
    const changes = projectDeliveryEvents(await this.rowsBefore(events), events)
    return this.store.apply({ topic, partition, from, to, changes, contents: [] })
  }

  private async rowsBefore(events: readonly PlacedDeliveryEvent[]): Promise<DeliveryRows> {
    const { deliveryKeys, webhookIds } = deliveryRowsConcerned(events)
    const [deliveries, health] = await Promise.all([
      this.store.deliveries(deliveryKeys),
      this.store.webhookHealth(webhookIds),
    ])
    return {
      deliveries: new Map(deliveries.flatMap((row) => (row === null ? [] : [[row.delivery.id, row]]))),
      health: new Map(health.flatMap((row) => (row === null ? [] : [[row.webhookId, row]]))),
    }
  }
}
