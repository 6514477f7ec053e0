import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { evolve, type Delivery } from './delivery.js'
import { anyDeliveryEvent, expectIdempotence } from './delivery.test-support.js'
import type { DeliveryEvent, DeliveryRequested } from './events.js'

const second = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000)
const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const deliveryId = idFromBytes('dlv', Buffer.alloc(16, 2))
const requested: DeliveryRequested = {
  ...{ type: 'DeliveryRequested', webhookId, deliveryId, replayId: null, requestedAt: second(0) },
  ...{ accountId: idFromBytes('acc', Buffer.alloc(16, 9)), environment: 'staging' },
  notification: { type: 'sample', inboxId: null, messageId: null, occurredAt: second(0) },
}
const attempt = (number: number) => ({
  ...{ webhookId, deliveryId, attempt: number },
  ...{ attemptedAt: second(number), latencyMs: 12, answer: Buffer.from('sealed') },
})
const succeeded = (number: number): DeliveryEvent => ({
  ...attempt(number),
  ...{ type: 'DeliverySucceeded', status: 204 },
})
const failed = (number: number, nextAttemptAt: Date | null): DeliveryEvent => ({
  ...attempt(number),
  ...{ type: 'DeliveryFailed', status: 500, error: 'answered 500', nextAttemptAt },
})
const abandoned: DeliveryEvent = {
  ...{ type: 'DeliveryAbandoned', webhookId, deliveryId },
  ...{ reason: 'inbox-ended', abandonedAt: second(9) },
}

function after(...events: DeliveryEvent[]): Delivery | null {
  return events.reduce<Delivery | null>(evolve, null)
}

describe('a delivery', () => {
  it('is due when it is requested, and is requested once', () => {
    const pending = { id: deliveryId, state: 'pending', attempts: [], dueAt: second(0) }
    expect(after(requested)).toMatchObject(pending)
    expect(after(requested, { ...requested, requestedAt: second(5) })).toMatchObject(pending)
  })

  it('does not exist before it is requested', () => {
    expect(after(succeeded(1), failed(1, null), abandoned)).toBeNull()
  })

  it('keeps each attempt, and is due again at the time that the last one set', () => {
    expect(after(requested, failed(1, second(6)))).toMatchObject({ state: 'pending', dueAt: second(6) })
    const { hasSucceeded, error, status } = { hasSucceeded: true, error: null, status: 204 }
    expect(after(requested, failed(1, second(6)), succeeded(2))).toMatchObject({
      state: 'succeeded',
      dueAt: null,
      attempts: [
        { hasSucceeded: false, error: 'answered 500', status: 500, attemptedAt: second(1), latencyMs: 12 },
        { hasSucceeded, error, status, attemptedAt: second(2), answer: Buffer.from('sealed') },
      ],
    })
  })

  it('has failed after its last attempt, and ignores further ones', () => {
    const history = [requested, failed(1, null)]
    expect(after(...history)).toMatchObject({ state: 'failed', dueAt: null })
    expect(after(...history, succeeded(2), abandoned)).toEqual(after(...history))
  })

  it('counts an attempt once: the first one on the log with its number', () => {
    const history = [requested, failed(1, second(6))]
    expect(after(...history, failed(1, null), succeeded(1), failed(3, null))).toEqual(after(...history))
  })

  it('is abandoned for a reason', () => {
    expect(after(requested, abandoned)).toMatchObject({
      ...{ state: 'abandoned', abandonedFor: 'inbox-ended', dueAt: null },
    })
    expect(after(requested, succeeded(1), abandoned)).toMatchObject({ state: 'succeeded' })
  })

  it('is the same if any event, or any part of its history, is repeated', () => {
    expectIdempotence(anyDeliveryEvent, { idOf: ({ deliveryId }) => deliveryId, evolve })
  })
})
