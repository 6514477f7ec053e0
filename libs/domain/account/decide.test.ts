import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { MAX_GRACE_MS, planWithLimits } from './access.js'
import {
  ACCOUNT_ID,
  day,
  given,
  hash,
  issued,
  KEY_FACTS,
  KEY_ID,
  opened,
  planNamed,
  revoked,
  rotated,
} from './account.test-support.js'
import { MAX_ACTIVE_KEYS, type AccountCommand } from './decide.js'
import { MAX_OWN_QUOTAS } from './quota.js'

const limits = { requestsPerMinute: 7 }
const open = { type: 'OpenAccount', accountId: ACCOUNT_ID, name: 'Acme', limits: null, now: day(0) } as const
const change = { type: 'ChangePlan', accountId: ACCOUNT_ID, limits: null, now: day(4) } as const
const issue = {
  type: 'IssueApiKey',
  ...KEY_FACTS,
  plan: planNamed('pro'),
  activeKeys: 0,
  now: day(1),
} as const
const revoke = {
  type: 'RevokeApiKey',
  accountId: ACCOUNT_ID,
  keyId: KEY_ID,
  revokedBy: KEY_ID,
  now: day(5),
} as const
const rotate = (rotation: number, at: Date, graceMs = 0): AccountCommand => {
  const { secretHash, prefix } = rotated(rotation, at, at)
  return {
    type: 'RotateApiKey',
    accountId: ACCOUNT_ID,
    keyId: KEY_ID,
    secretHash,
    prefix,
    graceMs,
    expiresAt: undefined,
    now: at,
  }
}

describe('SuspendAccount and ResumeAccount', () => {
  const ids = { accountId: ACCOUNT_ID, by: KEY_ID }
  const suspended = {
    type: 'AccountSuspended',
    accountId: ACCOUNT_ID,
    suspendedBy: KEY_ID,
    suspendedAt: day(3),
  } as const
  const resumed = {
    type: 'AccountResumed',
    accountId: ACCOUNT_ID,
    resumedBy: KEY_ID,
    resumedAt: day(4),
  } as const
  const suspend = { type: 'SuspendAccount', ...ids, now: day(3) } as const
  const resume = { type: 'ResumeAccount', ...ids, now: day(4) } as const

  it('suspend and resume an account, each once', () => {
    given(opened).when(suspend).then([suspended])
    given(opened, suspended).when(suspend).then([])
    given(opened, suspended).when(resume).then([resumed])
    given(opened, suspended, resumed).when(resume).then([])
    given(opened, suspended, resumed).when(suspend).then([suspended])
    given(opened).when(resume).then([])
    given().when(suspend).thenRefused({ code: 'unknown-account' })
  })
})

describe('CloseAccount and RecordErasure', () => {
  const ids = { accountId: ACCOUNT_ID }
  const by = { by: KEY_ID, environment: 'staging' }
  const close = { type: 'CloseAccount', ...ids, ...by, now: day(3) } as const
  const closed = {
    type: 'AccountClosed',
    ...ids,
    environment: 'staging',
    closedBy: KEY_ID,
    closedAt: day(3),
  } as const
  const record = { type: 'RecordErasure', ...ids, now: day(4) } as const
  const erased = { type: 'AccountErased', ...ids, erasedAt: day(4) } as const

  it('close an account, and record that it is erased, each once', () => {
    given(opened).when(close).then([closed])
    given(opened, closed).when(close).then([])
    given(opened).when(record).then([])
    given(opened, closed).when(record).then([erased])
    given(opened, closed, erased).when(record).then([])
  })

  it('let only its keys end', () => {
    const refusal = { code: 'account-closed', closedAt: day(3) } as const
    given(opened, closed)
      .when({ ...change, plan: planNamed('starter') })
      .thenRefused(refusal)
    given(opened, closed).when(issue).thenRefused(refusal)
    given(opened, closed)
      .when({ type: 'ResumeAccount', ...ids, by: KEY_ID, now: day(4) })
      .thenRefused(refusal)
    given(opened, issued, closed)
      .when(revoke)
      .then([revoked(day(5))])
  })
})

describe('OpenAccount', () => {
  it('opens an account, once', () => {
    const command = { ...open, plan: planNamed('pro') }
    given().when(command).then([opened])
    given(opened).when(command).then([])
  })

  it('accepts limits only if the plan allows them', () => {
    given()
      .when({ ...open, plan: planNamed('enterprise'), limits })
      .then([{ ...opened, plan: 'enterprise', limits }])
    given()
      .when({ ...open, plan: planNamed('pro'), limits })
      .thenRefused({ code: 'limits-not-per-account', plan: 'pro' })
  })
})

describe('ChangePlan', () => {
  const changed = { type: 'PlanChanged', accountId: ACCOUNT_ID, changedAt: day(4) } as const

  it('moves an account to another plan, once', () => {
    const toFree = { ...change, plan: planNamed('free') }
    const event = { ...changed, plan: 'free', limits: null }
    given(opened).when(toFree).then([event])
    given(opened, event).when(toFree).then([])
  })

  it('sets and removes limits if the plan allows them', () => {
    const toEnterprise = { ...change, plan: planNamed('enterprise') }
    const limited = { ...changed, plan: 'enterprise', limits }
    given(opened)
      .when({ ...toEnterprise, limits })
      .then([limited])
    given(opened, limited)
      .when(toEnterprise)
      .then([{ ...limited, limits: null }])
    given(opened)
      .when({ ...change, plan: planNamed('starter'), limits })
      .thenRefused({ code: 'limits-not-per-account', plan: 'starter' })
  })

  it('is refused for an account that does not exist', () => {
    given()
      .when({ ...change, plan: planNamed('free') })
      .thenRefused({ code: 'unknown-account' })
  })
})

describe('SetQuota', () => {
  const set = { type: 'SetQuota', accountId: ACCOUNT_ID, setBy: KEY_ID, now: day(3) } as const
  const scope = { environment: null, keyId: null }
  const quota = (limit: number | null) => ({ quota: 'inboxes', scope, limit }) as const
  const wasSet = (limit: number | null) =>
    ({ type: 'QuotaSet', accountId: ACCOUNT_ID, ...quota(limit), setBy: KEY_ID, setAt: day(3) }) as const
  const plan = { ...planNamed('pro'), maxInboxes: 10 }

  it('sets a quota within that of the plan, and removes it, once', () => {
    given(opened)
      .when({ ...set, ...quota(10), plan })
      .then([wasSet(10)])
    given(opened, wasSet(10))
      .when({ ...set, ...quota(10), plan })
      .then([])
    given(opened, wasSet(10))
      .when({ ...set, ...quota(null), plan })
      .then([wasSet(null)])
    given(opened, wasSet(10), wasSet(null))
      .when({ ...set, ...quota(null), plan })
      .then([])
  })

  it('sets one for each environment and key, up to a maximum', () => {
    const ofEnvironment = (index: number) => ({ environment: `e${index}`, keyId: null })
    const many = Array.from({ length: MAX_OWN_QUOTAS }, (_, index) => ({
      ...wasSet(index % 10),
      scope: ofEnvironment(index),
    }))
    const ofKey = { ...quota(1), scope: { environment: null, keyId: KEY_ID } }
    given(opened, ...many)
      .when({ ...set, ...ofKey, plan })
      .thenRefused({ code: 'too-many-quotas', max: MAX_OWN_QUOTAS })
    // What concurrent requests have set beyond it does not count.
    given(opened, ...many, { ...wasSet(1), ...ofKey })
      .when({ ...set, ...ofKey, plan })
      .thenRefused({ code: 'too-many-quotas', max: MAX_OWN_QUOTAS })
    given(opened, ...many)
      .when({ ...set, ...quota(9), scope: ofEnvironment(0), plan })
      .then([{ ...wasSet(9), scope: ofEnvironment(0) }])
    given(opened, ...many.slice(1))
      .when({ ...set, ...ofKey, plan })
      .then([{ ...wasSet(1), ...ofKey }])
  })

  it('is refused above the quota of the plan', () => {
    given(opened)
      .when({ ...set, ...quota(11), plan })
      .thenRefused({ code: 'over-plan', max: 10 })
  })
})

describe('IssueApiKey', () => {
  it('issues a key, once', () => {
    given(opened).when(issue).then([issued])
    given(opened, issued).when(issue).then([])
    given(opened, issued)
      .when({ ...issue, activeKeys: MAX_ACTIVE_KEYS })
      .then([])
  })

  it('is refused on a plan without API access', () => {
    given(opened)
      .when({ ...issue, plan: planNamed('free') })
      .thenRefused({ code: 'plan-lacks-api-access', plan: 'free' })
  })

  it("is refused if the rate limit exceeds the account's own limit", () => {
    const plan = planWithLimits(planNamed('enterprise'), limits)
    given(opened)
      .when({ ...issue, plan, rateLimit: 7 })
      .then([{ ...issued, rateLimit: 7 }])
    given(opened)
      .when({ ...issue, plan, rateLimit: 8 })
      .thenRefused({ code: 'over-rate-limit', requestsPerMinute: 7 })
  })

  it('is refused if the account has the maximum number of keys', () => {
    given(opened)
      .when({ ...issue, activeKeys: MAX_ACTIVE_KEYS - 1 })
      .then([issued])
    given(opened)
      .when({ ...issue, activeKeys: MAX_ACTIVE_KEYS })
      .thenRefused({ code: 'too-many-keys', max: MAX_ACTIVE_KEYS })
  })

  it('is refused for an account that does not exist', () => {
    given().when(issue).thenRefused({ code: 'unknown-account' })
  })
})

describe('RotateApiKey', () => {
  it('gives the key a new secret and keeps the previous one valid during the grace', () => {
    given(opened, issued)
      .when(rotate(1, day(2), 86_400_000))
      .then([rotated(1, day(2), day(3))])
    given(opened, issued, rotated(1, day(2), day(3)))
      .when(rotate(2, day(3)))
      .then([rotated(2, day(3), day(3))])
  })

  it('changes nothing if the key already has, or had, that secret', () => {
    const history = [opened, issued, rotated(1, day(2), day(3))]
    given(...history)
      .when(rotate(1, day(2)))
      .then([])
    given(...history, rotated(2, day(3), day(4)))
      .when(rotate(1, day(2)))
      .then([])
  })

  it('is refused if the grace is longer than the maximum', () => {
    given(opened, issued)
      .when(rotate(1, day(2), MAX_GRACE_MS))
      .then([rotated(1, day(2), day(9))])
    given(opened, issued)
      .when(rotate(1, day(2), MAX_GRACE_MS + 1))
      .thenRefused({ code: 'over-grace', maxMs: MAX_GRACE_MS })
  })

  it('is refused for a key that is revoked or does not exist', () => {
    given(opened, issued, revoked(day(2)))
      .when(rotate(1, day(3)))
      .thenRefused({ code: 'key-ended', state: 'revoked', endedAt: day(2) })
    given(opened)
      .when(rotate(1, day(3)))
      .thenRefused({ code: 'unknown-key' })
  })
})

describe('RevokeApiKey', () => {
  it('revokes a key, once', () => {
    given(opened, issued)
      .when(revoke)
      .then([revoked(day(5))])
    given(opened, issued, revoked(day(5)))
      .when({ ...revoke, now: day(6) })
      .then([])
  })

  it('is refused for a key that does not exist or belongs to another account', () => {
    given(opened).when(revoke).thenRefused({ code: 'unknown-key' })
    given(opened, { ...issued, accountId: idFromBytes('acc', Buffer.alloc(16, 7)), secretHash: hash('e') })
      .when(revoke)
      .thenRefused({ code: 'unknown-key' })
  })
})
