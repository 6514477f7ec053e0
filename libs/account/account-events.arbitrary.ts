import fc from 'fast-check'
import { idFromBytes } from '#libs/typeid/typeid.js'
import type { AccountEvent, AccountOpened } from './events.js'
import { PLAN_NAMES } from './plan.js'
import { SCOPES } from './scope.js'

const anyDay = fc.integer({ min: 0, max: 3_000 }).map((days) => new Date(days * 86_400_000))
const accountId = fc.constant(idFromBytes('acc', Buffer.alloc(16, 1)))
const anyKeyId = fc.integer({ min: 1, max: 3 }).map((n) => idFromBytes('key', Buffer.alloc(16, n)))

const anyOpened: fc.Arbitrary<AccountOpened> = fc.record({
  type: fc.constant('AccountOpened' as const),
  accountId,
  name: fc.string(),
  plan: fc.constantFrom(...PLAN_NAMES),
  openedAt: anyDay,
})

/** Events of one account and a few keys, so that they meet. */
export const anyAccountEvent: fc.Arbitrary<AccountEvent> = fc.oneof(
  anyOpened,
  fc.record({
    type: fc.constant('ApiKeyIssued' as const),
    accountId,
    keyId: anyKeyId,
    name: fc.string(),
    environment: fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/),
    scopes: fc.subarray([...SCOPES]),
    secretHash: fc.stringMatching(/^[0-9a-f]{64}$/),
    prefix: fc.string({ maxLength: 20 }),
    issuedAt: anyDay,
  }),
)

export const anyAccountSequence = fc.array(anyAccountEvent, { maxLength: 12 })

/** What a log can hold: nobody knows an account before its opening is on the log. */
export const anyAccountHistory = fc
  .tuple(anyOpened, anyAccountSequence)
  .map(([first, rest]): AccountEvent[] => [first, ...rest])
