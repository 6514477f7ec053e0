import type { DecodedBatch } from '#libs/ports/event-log/decode-batch.js'
import type { RecordBatch } from '#libs/ports/event-log/event-log.js'
import type { ProjectionStore, StepOutcome } from '#libs/ports/read-model/projection-store.js'
import { projectWebhookEvents, webhookRowsBefore } from '#libs/ports/read-model/webhook-projection.js'
import type { WebhookEvent } from '#libs/domain/webhook/webhook-events.js'

/** Turns a run of a partition's deliveries and replays into one step of the views. */
export class WebhookProjector {
  constructor(private readonly store: ProjectionStore) {}

  /** Resolves once the views show the events, or the store has said that it stands elsewhere. */
  async project(
    { topic, partition, from }: RecordBatch,
    { events: decoded, next: to }: DecodedBatch<WebhookEvent>,
  ): Promise<StepOutcome> {
    const events = decoded.map(({ offset, recorded: { event } }) => ({ offset, event }))
    const changes = projectWebhookEvents(await webhookRowsBefore(this.store, events), events)
    return this.store.apply({ topic, partition, from, to, changes, contents: [] })
  }
}
