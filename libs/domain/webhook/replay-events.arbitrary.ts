import fc from 'fast-check'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { ReplayEvent, ReplayPlace, ReplaySelection } from './webhook-events.js'

const anyTime = fc.integer({ min: 0, max: 3_000 }).map((days) => new Date(days * 86_400_000))
const anyOffset = fc.nat(1_000_000)
const ids = {
  webhookId: fc.constant(idFromBytes('whk', Buffer.alloc(16, 1))),
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

const anyPlace: fc.Arbitrary<ReplayPlace> = fc.oneof(
  fc.record({ stage: fc.constantFrom('given' as const, 'told' as const), offset: anyOffset }),
  fc.record({ stage: fc.constant('held' as const), inboxId: fc.option(anyInboxId), offset: anyOffset }),
)

/** Events of one webhook and two replays, so that they meet. */
export const anyReplayEvent: fc.Arbitrary<ReplayEvent> = fc.oneof(
  fc.record({
    type: fc.constant('ReplayRequested' as const),
    ...ids,
    accountId: fc.constant(idFromBytes('acc', Buffer.alloc(16, 9))),
    environment: fc.constant('staging'),
    selection: anySelection,
    requestedAt: anyTime,
  }),
  fc.record({
    type: fc.constant('ReplayAdvanced' as const),
    ...ids,
    step: fc.integer({ min: 1, max: 4 }),
    next: fc.option(anyPlace),
    advancedAt: anyTime,
  }),
  fc.record({ type: fc.constant('ReplayCancelled' as const), ...ids, cancelledAt: anyTime }),
)
