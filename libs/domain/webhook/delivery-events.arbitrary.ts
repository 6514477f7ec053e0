import fc from 'fast-check'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { ABANDONED_FOR, type AttemptFacts, type DeliveryEvent, type Notification } from './webhook-events.js'

const anyTime = fc.integer({ min: 0, max: 3_000 }).map((days) => new Date(days * 86_400_000))
const webhookId = fc.constant(idFromBytes('whk', Buffer.alloc(16, 1)))
const anyDeliveryId = fc.integer({ min: 1, max: 3 }).map((n) => idFromBytes('dlv', Buffer.alloc(16, n)))
const inboxId = idFromBytes('inb', Buffer.alloc(16, 4))
const messageId = idFromBytes('msg', Buffer.alloc(16, 5))

const anyNotification: fc.Arbitrary<Notification> = anyTime.chain((occurredAt) =>
  fc.constantFrom<Notification>(
    { type: 'message.received', inboxId, messageId, occurredAt },
    { type: 'inbox.expired', inboxId, messageId: null, occurredAt },
    { type: 'sample', inboxId: null, messageId: null, occurredAt },
  ),
)

const anyAttempt: fc.Arbitrary<AttemptFacts> = fc.record({
  webhookId,
  deliveryId: anyDeliveryId,
  attempt: fc.integer({ min: 1, max: 4 }),
  attemptedAt: anyTime,
  latencyMs: fc.nat(15_000),
  answer: fc.option(fc.uint8Array({ maxLength: 40 })),
})

const anyStatus = fc.integer({ min: 100, max: 599 })

/** Events of one webhook and a few deliveries, so that they meet. */
export const anyDeliveryEvent: fc.Arbitrary<DeliveryEvent> = fc.oneof(
  fc.record({
    type: fc.constant('DeliveryRequested' as const),
    webhookId,
    deliveryId: anyDeliveryId,
    accountId: fc.constant(idFromBytes('acc', Buffer.alloc(16, 9))),
    environment: fc.constant('staging'),
    notification: anyNotification,
    replayId: fc.constantFrom(null, idFromBytes('rpl', Buffer.alloc(16, 6))),
    requestedAt: anyTime,
  }),
  fc
    .tuple(anyAttempt, anyStatus)
    .map(([facts, status]) => ({ ...facts, type: 'DeliverySucceeded' as const, status })),
  fc
    .tuple(anyAttempt, fc.option(anyStatus), fc.string(), fc.option(anyTime))
    .map(([facts, status, error, nextAttemptAt]) => ({
      ...facts,
      ...{ type: 'DeliveryFailed' as const, status, error, nextAttemptAt },
    })),
  fc.record({
    type: fc.constant('DeliveryAbandoned' as const),
    webhookId,
    deliveryId: anyDeliveryId,
    reason: fc.constantFrom(...ABANDONED_FOR),
    abandonedAt: anyTime,
  }),
)
