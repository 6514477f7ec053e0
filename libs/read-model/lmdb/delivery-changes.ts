import type { Delivery } from '#libs/webhook/delivery.js'
import { commit } from '#libs/lmdb-file/lmdb-file.js'
import type { DeliveryId, WebhookId } from '#libs/typeid/typeid.js'
import type { DeliveryRow, WebhookHealth } from '../views.js'
import type { DueDeliveryKey, Tables } from './tables.js'

const REMOVED_AT_ONCE = 500
const FIRST_ID = 'dlv_' as DeliveryId
const BEHIND_IDS = 'dlv_~' as DeliveryId

/** To be called within a transaction, as the others are. */
export function putDelivery(tables: Tables, row: DeliveryRow, previous: Delivery | null): void {
  const { delivery, offset } = row
  const { id, webhookId, state, dueAt } = delivery
  tables.deliveries.putSync([webhookId, id], row)
  if (previous === null) tables.deliveryOrder.putSync([webhookId, offset], id)
  else if (previous.state !== state) tables.deliveryStates.removeSync([webhookId, previous.state, offset])
  if (previous?.state !== state) tables.deliveryStates.putSync([webhookId, state, offset], id)
  if (previous?.dueAt) tables.dueDeliveries.removeSync([webhookId, previous.dueAt.getTime(), id])
  if (dueAt !== null) tables.dueDeliveries.putSync([webhookId, dueAt.getTime(), id], true)
  putEarliest(tables, webhookId)
}

export function putWebhookHealth(tables: Tables, partition: number, health: WebhookHealth): void {
  tables.webhookHealth.putSync(health.webhookId, { ...health, partition })
}

/** The range of what is due of a webhook's, earliest first. */
export function dueRangeOf(
  webhookId: WebhookId,
  untilMs = Infinity,
): { start: DueDeliveryKey; end: DueDeliveryKey } {
  return { start: [webhookId, 0, FIRST_ID], end: [webhookId, untilMs, BEHIND_IDS] }
}

/** Removes a partition's deliveries and all that belongs to them, a little at a time, as if there had been none. */
export async function removeDeliveries(tables: Tables, partition: number): Promise<void> {
  const ids: WebhookId[] = []
  for (const { key, value } of tables.webhookHealth.getRange({}))
    if (value.partition === partition) ids.push(key)
  for (const id of ids) {
    let isLeft = true
    while (isLeft) isLeft = await commit(tables.root, () => removeSome(tables, id))
  }
}

/** Whether there are more. A webhook is forgotten last, so that a process killed midway leads the next one to the rest. */
function removeSome(tables: Tables, webhookId: WebhookId): boolean {
  const range = { start: [webhookId, 0], end: [webhookId, Infinity], limit: REMOVED_AT_ONCE } as const
  const some = [...tables.deliveryOrder.getRange({ ...range, start: [...range.start], end: [...range.end] })]
  for (const { key, value: id } of some) {
    const row = tables.deliveries.get([webhookId, id])
    if (row !== undefined) {
      const { state, dueAt } = row.delivery
      tables.deliveryStates.removeSync([webhookId, state, row.offset])
      if (dueAt !== null) tables.dueDeliveries.removeSync([webhookId, dueAt.getTime(), id])
      tables.deliveries.removeSync([webhookId, id])
    }
    tables.deliveryOrder.removeSync(key)
  }
  if (some.length === REMOVED_AT_ONCE) return true
  putEarliest(tables, webhookId)
  tables.webhookHealth.removeSync(webhookId)
  return false
}

function putEarliest(tables: Tables, webhookId: WebhookId): void {
  const [first] = tables.dueDeliveries.getKeys({ ...dueRangeOf(webhookId), limit: 1 })
  const earliestMs = first?.[1]
  const knownMs = tables.earliestDue.get(webhookId)
  if (earliestMs === knownMs) return
  if (knownMs !== undefined) tables.dueWebhooks.removeSync([knownMs, webhookId])
  if (earliestMs === undefined) {
    tables.earliestDue.removeSync(webhookId)
    return
  }
  tables.earliestDue.putSync(webhookId, earliestMs)
  tables.dueWebhooks.putSync([earliestMs, webhookId], true)
}
