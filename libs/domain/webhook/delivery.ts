import type { DeliveryId } from '#libs/domain/ids/typeid.js'
import type {
  AttemptFacts,
  DeliveryAbandoned,
  DeliveryEvent,
  DeliveryFailed,
  DeliveryRequested,
  DeliverySucceeded,
} from './events.js'

export const DELIVERY_STATES = ['pending', 'succeeded', 'failed', 'abandoned'] as const

/** One notification for one webhook, with its attempts. */
export interface Delivery extends Omit<DeliveryRequested, 'type' | 'deliveryId'> {
  id: DeliveryId
  /** `failed` means that there are no more attempts. */
  state: (typeof DELIVERY_STATES)[number]
  /** In chronological order. */
  attempts: readonly Attempt[]
  /** When the next attempt is due; null if there is none. */
  dueAt: Date | null
  abandonedFor: DeliveryAbandoned['reason'] | null
}

export interface Attempt extends Pick<AttemptFacts, 'attemptedAt' | 'latencyMs' | 'answer'> {
  hasSucceeded: boolean
  status: number | null
  error: string | null
}

/** Total and idempotent: for a repeated or misplaced event, returns the same delivery object. */
export function evolve(delivery: Delivery | null, event: DeliveryEvent): Delivery | null {
  if (event.type === 'DeliveryRequested') {
    if (delivery !== null) return delivery
    const { type: _type, deliveryId: id, ...facts } = event
    const dueAt = event.requestedAt
    return { ...facts, id, state: 'pending', attempts: [], dueAt, abandonedFor: null }
  }
  if (delivery?.state !== 'pending') return delivery
  if (event.type === 'DeliveryAbandoned') {
    return { ...delivery, state: 'abandoned', dueAt: null, abandonedFor: event.reason }
  }
  if (event.attempt !== delivery.attempts.length + 1) return delivery
  const attempts = [...delivery.attempts, attemptOf(event)]
  if (event.type === 'DeliverySucceeded') return { ...delivery, attempts, state: 'succeeded', dueAt: null }
  const { nextAttemptAt: dueAt } = event
  return { ...delivery, attempts, state: dueAt === null ? 'failed' : 'pending', dueAt }
}

/** Whether its endpoint has not accepted it so far, even if another attempt is due. */
export function hasFailed({ state, attempts, abandonedFor }: Delivery): boolean {
  if (state === 'abandoned') return abandonedFor === 'webhook-disabled' || abandonedFor === 'replay-cancelled'
  return state === 'failed' || (state === 'pending' && attempts.length > 0)
}

function attemptOf(event: DeliverySucceeded | DeliveryFailed): Attempt {
  const { attemptedAt, latencyMs, answer, status } = event
  const hasSucceeded = event.type === 'DeliverySucceeded'
  const error = event.type === 'DeliveryFailed' ? event.error : null
  return { attemptedAt, latencyMs, answer, status, hasSucceeded, error }
}
