import fc from 'fast-check'
import { idFromBytes, type KeyId } from '#libs/domain/ids/typeid.js'
import { anyRegistrationEvent, isCaused } from '#libs/domain/webhook/registration-events.arbitrary.js'
import type { AccountEvent, AccountOpened } from './events.js'
import { parseRetention, type AccountLimits } from './plan.js'
import { SCOPES } from './api-key.js'

const anyDay = fc.integer({ min: 0, max: 3_000 }).map((days) => new Date(days * 86_400_000))
const accountId = fc.constant(idFromBytes('acc', Buffer.alloc(16, 1)))
const anyKeyId = fc.integer({ min: 1, max: 3 }).map((n) => idFromBytes('key', Buffer.alloc(16, n)))
const anyPlan = fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/)
const anyEnvironment = fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/)
const anyHash = fc.stringMatching(/^[0-9a-f]{64}$/)
const anyPrefix = fc.string({ maxLength: 20 })
const anyCount = fc.integer({ min: 1, max: 1_000_000 })

const anyLimits: fc.Arbitrary<AccountLimits> = fc.record(
  {
    requestsPerMinute: anyCount,
    maxMessages: anyCount,
    retention: fc.constantFrom('30m', '24h', '30d').map((text) => parseRetention(text) ?? { text, ms: 0 }),
  },
  { requiredKeys: [] },
)

const anyOpened: fc.Arbitrary<AccountOpened> = fc.record({
  type: fc.constant('AccountOpened' as const),
  accountId,
  name: fc.string(),
  plan: anyPlan,
  limits: fc.option(anyLimits),
  openedAt: anyDay,
})

/** Events of one account, a few keys and a few webhooks, so that they meet. */
export const anyAccountEvent: fc.Arbitrary<AccountEvent> = fc.oneof(
  anyOpened,
  fc.record({
    type: fc.constant('PlanChanged' as const),
    accountId,
    plan: anyPlan,
    limits: fc.option(anyLimits),
    changedAt: anyDay,
  }),
  fc.record({
    type: fc.constant('ApiKeyIssued' as const),
    accountId,
    keyId: anyKeyId,
    name: fc.string(),
    environment: anyEnvironment,
    scopes: fc.subarray([...SCOPES]),
    rateLimit: fc.option(anyCount),
    secretHash: anyHash,
    prefix: anyPrefix,
    issuedAt: anyDay,
  }),
  fc.record({
    type: fc.constant('ApiKeyRotated' as const),
    accountId,
    keyId: anyKeyId,
    rotation: fc.integer({ min: 1, max: 3 }),
    secretHash: anyHash,
    prefix: anyPrefix,
    graceEndsAt: anyDay,
    rotatedAt: anyDay,
  }),
  fc.record({
    type: fc.constant('ApiKeyRevoked' as const),
    accountId,
    keyId: anyKeyId,
    revokedBy: anyKeyId,
    revokedAt: anyDay,
  }),
  anyRegistrationEvent(accountId),
)

export const anyAccountSequence = fc.array(anyAccountEvent, { maxLength: 12 })

/** What a log can hold: nobody knows an account, a key or a webhook, or its last rotation, before it is on the log. */
export const anyAccountHistory = fc
  .tuple(anyOpened, anyAccountSequence)
  .map(([first, rest]): AccountEvent[] => [first, ...withCauses(rest)])

function withCauses(events: readonly AccountEvent[]): AccountEvent[] {
  const rotations = new Map<KeyId, number>()
  const isCausedRegistration = isCaused()
  return events.filter((event) => {
    if (event.type === 'AccountOpened' || event.type === 'PlanChanged') return true
    if ('webhookId' in event) return isCausedRegistration(event)
    const { type, keyId } = event
    const known = rotations.get(keyId)
    if (type === 'ApiKeyIssued') {
      if (known === undefined) rotations.set(keyId, 0)
      return true
    }
    if (known === undefined) return false
    if (type === 'ApiKeyRevoked') return true
    if (event.rotation > known + 1) return false
    rotations.set(keyId, Math.max(known, event.rotation))
    return true
  })
}
