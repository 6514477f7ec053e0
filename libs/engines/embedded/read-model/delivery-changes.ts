import type { Delivery } from '#libs/domain/webhook/delivery.js'
import { commit } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { DeliveryId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { DeliveryRow, WebhookHealth } from '#libs/ports/read-model/views.js'
import { isOver } from '#libs/ports/read-model/old-deliveries.js'
import { removeReplaysOf } from './replay-changes.js'
import type { DeliveryOrderKey, DueDeliveryKey, Tables } from './tables.js'

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

/** Removes those that are over and were asked for before then, a little at a time; resolves with how many. */
export async function removeOldDeliveries(tables: Tables, before: Date): Promise<number> {
  let count = 0
  for (const webhookId of [...tables.webhookHealth.getKeys({})]) {
    let removed = REMOVED_AT_ONCE
    while (removed === REMOVED_AT_ONCE) {
      removed = await commit(tables.root, () => {
        const old = oldestOf(tables, webhookId).filter((row) => isOver(row, before))
        for (const row of old) removeRow(tables, row)
        return old.length
      })
      count += removed
    }
  }
  return count
}

function oldestOf(tables: Tables, webhookId: WebhookId): DeliveryRow[] {
  const start: DeliveryOrderKey = [webhookId, 0]
  const end: DeliveryOrderKey = [webhookId, Infinity]
  const ids = tables.deliveryOrder.getRange({ start, end, limit: REMOVED_AT_ONCE })
  return [...ids].flatMap(({ value }) => tables.deliveries.get([webhookId, value]) ?? [])
}

function removeRow(tables: Tables, { delivery, offset }: DeliveryRow): void {
  const { id, webhookId, state, dueAt } = delivery
  tables.deliveryStates.removeSync([webhookId, state, offset])
  if (dueAt !== null) tables.dueDeliveries.removeSync([webhookId, dueAt.getTime(), id])
  tables.deliveries.removeSync([webhookId, id])
  tables.deliveryOrder.removeSync([webhookId, offset])
}

/** Whether there are more. A webhook is forgotten last, so that a process killed midway leads the next one to the rest. */
function removeSome(tables: Tables, webhookId: WebhookId): boolean {
  const some = oldestOf(tables, webhookId)
  for (const row of some) removeRow(tables, row)
  if (some.length === REMOVED_AT_ONCE) return true
  putEarliest(tables, webhookId)
  removeReplaysOf(tables, webhookId)
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
