import fc from 'fast-check'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import {
  ABANDONED_FOR,
  type AttemptFacts,
  type DeliveryEvent,
  type Notification,
  type ReplayEvent,
  type ReplayPosition,
  type ReplaySelection,
} from './events.js'

const anyTime = fc.integer({ min: 0, max: 3_000 }).map((days) => new Date(days * 86_400_000))
const webhookId = fc.constant(idFromBytes('whk', Buffer.alloc(16, 1)))
const owner = {
  accountId: fc.constant(idFromBytes('acc', Buffer.alloc(16, 9))),
  environment: fc.constant('staging'),
}
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

/** Events of one webhook and a few deliveries, so that events about the same one occur. */
export const anyDeliveryEvent: fc.Arbitrary<DeliveryEvent> = fc.oneof(
  fc.record({
    type: fc.constant('DeliveryRequested' as const),
    webhookId,
    deliveryId: anyDeliveryId,
    ...owner,
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

const anyOffset = fc.nat(1_000_000)
const replayIds = {
  webhookId,
  replayId: fc.integer({ min: 1, max: 2 }).map((n) => idFromBytes('rpl', Buffer.alloc(16, n))),
}
const anyInboxId = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => idFromBytes('inb', bytes))

const anySelection: fc.Arbitrary<ReplaySelection> = fc.oneof(
  fc.record({
    kind: fc.constant('range' as const),
    from: anyTime,
    to: anyTime,
    onlyFailed: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('deliveries' as const),
    deliveryIds: fc.array(fc.constant(idFromBytes('dlv', Buffer.alloc(16, 2))), { maxLength: 3 }),
  }),
  fc.record({ kind: fc.constant('held' as const), since: fc.option(anyTime) }),
)

const anyPosition: fc.Arbitrary<ReplayPosition> = fc.oneof(
  fc.record({ stage: fc.constantFrom('given' as const, 'told' as const), offset: anyOffset }),
  fc.record({ stage: fc.constant('held' as const), inboxId: fc.option(anyInboxId), offset: anyOffset }),
)

/** Events of one webhook and two replays, so that events about the same one occur. */
export const anyReplayEvent: fc.Arbitrary<ReplayEvent> = fc.oneof(
  fc.record({
    type: fc.constant('ReplayRequested' as const),
    ...replayIds,
    ...owner,
    selection: anySelection,
    requestedAt: anyTime,
  }),
  fc.record({
    type: fc.constant('ReplayAdvanced' as const),
    ...replayIds,
    step: fc.integer({ min: 1, max: 4 }),
    next: fc.option(anyPosition),
    advancedAt: anyTime,
  }),
  fc.record({ type: fc.constant('ReplayCancelled' as const), ...replayIds, cancelledAt: anyTime }),
)

/** How events of one kind are applied, and to the state of which id. */
export interface Evolution<Event, State> {
  idOf: (event: Event) => string
  evolve: (state: State | null, event: Event) => State | null
}

/** Fails if repeating any event, or any part of a history, gives other states. */
export function expectIdempotence<Event, State>(
  anyEvent: fc.Arbitrary<Event>,
  evolution: Evolution<Event, State>,
): void {
  fc.assert(
    fc.property(fc.array(anyEvent), fc.nat(), fc.nat(), (events, one, other) => {
      const history = thatChange(events, evolution)
      const once = allAfter(history, evolution)
      const twice = history.flatMap((event) => [event, event])
      expect(allAfter(twice, evolution)).toEqual(once)
      const from = one % (history.length + 1)
      const to = from + (other % (history.length + 1 - from))
      expect(allAfter([...history.slice(0, to), ...history.slice(from)], evolution)).toEqual(once)
    }),
  )
}

function allAfter<Event, State>(
  history: readonly Event[],
  { idOf, evolve }: Evolution<Event, State>,
): Map<string, State | null> {
  const states = new Map<string, State | null>()
  for (const event of history) states.set(idOf(event), evolve(states.get(idOf(event)) ?? null, event))
  return states
}

/** Drops events that change nothing, such as an attempt before the previous one: no process appends those. */
function thatChange<Event, State>(
  events: readonly Event[],
  { idOf, evolve }: Evolution<Event, State>,
): Event[] {
  const states = new Map<string, State | null>()
  return events.filter((event) => {
    const before = states.get(idOf(event)) ?? null
    const next = evolve(before, event)
    states.set(idOf(event), next)
    return next !== before
  })
}
