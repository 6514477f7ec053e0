import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { anyDeliveryEvent, expectIdempotence } from './delivery.test-support.js'
import type { DeliveryEvent, DeliveryRequested } from './webhook-events.js'
import { evolve, type Delivery } from './delivery.js'

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
  it('is due as soon as it is asked for, and asked for once', () => {
    const pending = { id: deliveryId, state: 'pending', attempts: [], dueAt: second(0) }
    expect(after(requested)).toMatchObject(pending)
    expect(after(requested, { ...requested, requestedAt: second(5) })).toMatchObject(pending)
  })

  it('is nothing before it is asked for', () => {
    expect(after(succeeded(1), failed(1, null), abandoned)).toBeNull()
  })

  it('keeps each attempt, and is due again when the last one says so', () => {
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

  it('has failed where no attempt is left, and has no more of them', () => {
    const history = [requested, failed(1, null)]
    expect(after(...history)).toMatchObject({ state: 'failed', dueAt: null })
    expect(after(...history, succeeded(2), abandoned)).toEqual(after(...history))
  })

  it('counts an attempt once: the first on the log of those with one number', () => {
    const history = [requested, failed(1, second(6))]
    expect(after(...history, failed(1, null), succeeded(1), failed(3, null))).toEqual(after(...history))
  })

  it('is abandoned for a reason', () => {
    expect(after(requested, abandoned)).toMatchObject({
      ...{ state: 'abandoned', abandonedFor: 'inbox-ended', dueAt: null },
    })
    expect(after(requested, succeeded(1), abandoned)).toMatchObject({ state: 'succeeded' })
  })

  it('is the same after any event twice, and after any part of its history again', () => {
    expectIdempotence(anyDeliveryEvent, { idOf: ({ deliveryId }) => deliveryId, evolve })
  })
})
