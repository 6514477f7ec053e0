import type { ProjectionStore } from './projection-store.js'
import {
  replaysConcerned,
  webhookRowsConcerned,
  type PlacedWebhookEvent,
  type WebhookRows,
} from './webhook-projection.js'

type Rows = Pick<ProjectionStore, 'deliveries' | 'replays' | 'webhookHealth'>

/** The rows that a run of events concerns, as the views have them. */
export async function webhookRowsBefore(
  store: Rows,
  events: readonly PlacedWebhookEvent[],
): Promise<WebhookRows> {
  const { deliveryKeys, webhookIds } = webhookRowsConcerned(events)
  const [found, health] = await Promise.all([store.deliveries(deliveryKeys), store.webhookHealth(webhookIds)])
  const deliveries = found.filter((row) => row !== null)
  const replayKeys = replaysConcerned(events, deliveries)
  const replays = replayKeys.length === 0 ? [] : await store.replays(replayKeys)
  return {
    deliveries: new Map(deliveries.map((row) => [row.delivery.id, row])),
    replays: new Map(replays.flatMap((row) => (row === null ? [] : [[row.id, row]]))),
    health: new Map(health.flatMap((row) => (row === null ? [] : [[row.webhookId, row]]))),
  }
}
