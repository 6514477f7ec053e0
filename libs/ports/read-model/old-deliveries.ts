import type { DeliveryRow } from './views.js'

/** Whether nothing more is to come of a delivery that was asked for before then. */
export function isOver({ delivery }: DeliveryRow, before: Date): boolean {
  return delivery.state !== 'pending' && delivery.requestedAt < before
}
