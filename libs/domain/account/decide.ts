import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import { MAX_GRACE_MS, type AccountLimits, type Plan } from './access.js'
import { haveSameFaults } from '#libs/domain/inbox/fault.js'
import { defaultFaultsOf, isOnPlan, type AccountSlice } from './account.js'
import { daysAfter, keyEventDue, keyState, MAX_KEY_DAYS } from './key-expiry.js'
import type { AccountEvent, DefaultFaultsSet, AccountOpened, ApiKeyIssued, QuotaSet } from './events.js'
import type { Author } from './member.js'
import { MAX_OWN_QUOTAS, maxOf, quotaName } from './quota.js'

/** Of one account; revoked and expired keys don't count. */
export const MAX_ACTIVE_KEYS = 1_000

export type AccountCommand =
  | (Pick<AccountOpened, 'accountId' | 'name' | 'limits'> & { type: 'OpenAccount'; plan: Plan; now: Date })
  | (Omit<DefaultFaultsSet, 'type' | 'setAt'> & { type: 'SetDefaultFaults'; now: Date })
  | (Omit<QuotaSet, 'type' | 'setAt'> & { type: 'SetQuota'; plan: Plan; now: Date })
  | { type: 'SetSignIn'; accountId: AccountId; requiresProvider: boolean; setBy: Author; now: Date }
  | { type: 'SuspendAccount'; accountId: AccountId; by: KeyId; now: Date }
  | { type: 'ResumeAccount'; accountId: AccountId; by: KeyId; now: Date }
  | { type: 'CloseAccount'; accountId: AccountId; by: KeyId; environment: string; now: Date }
  /** Records that all of a closed account has ended. */
  | { type: 'RecordErasure'; accountId: AccountId; now: Date }
  | { type: 'ChangePlan'; accountId: AccountId; plan: Plan; limits: AccountLimits | null; now: Date }
  | (Omit<ApiKeyIssued, 'type' | 'issuedAt'> & {
      type: 'IssueApiKey'
      /** With the account's own limits. */
      plan: Plan
      /** How many the account has, according to the view. */
      activeKeys: number
      now: Date
    })
  | {
      type: 'RotateApiKey'
      accountId: AccountId
      keyId: KeyId
      secretHash: string
      prefix: string
      graceMs: number
      /** Null if it never expires; undefined if that is unchanged. */
      expiresAt: Date | null | undefined
      now: Date
    }
  /** Records the notice that is due, or that the key has expired. */
  | { type: 'RecordKeyExpiry'; accountId: AccountId; keyId: KeyId; now: Date }
  | { type: 'RevokeApiKey'; accountId: AccountId; keyId: KeyId; revokedBy: KeyId; now: Date }

/** What still happens to a closed account. */
const ENDING: ReadonlySet<AccountCommand['type']> = new Set([
  'CloseAccount',
  'RecordErasure',
  'RevokeApiKey',
  'RecordKeyExpiry',
])

/** Why a command was refused. Expected, not an error. */
export type Refusal =
  | { code: 'unknown-account' }
  | { code: 'account-closed'; closedAt: Date }
  | { code: 'limits-not-per-account'; plan: string }
  | { code: 'over-plan'; max: number }
  | { code: 'too-many-quotas'; max: number }
  | { code: 'plan-lacks-api-access'; plan: string }
  | { code: 'over-rate-limit'; requestsPerMinute: number }
  | { code: 'too-many-keys'; max: number }
  | { code: 'unknown-key' }
  | { code: 'key-ended'; state: 'revoked' | 'expired'; endedAt: Date }
  | { code: 'expiry-out-of-range'; maxDays: number }
  | { code: 'over-grace'; maxMs: number }

/**
 * Checks a command against the view. The view may lag; if commands conflict, the order of their events on the log
 * decides. Neither an event nor a refusal means that there is nothing to change, as for a repeated command.
 */
export function decide(
  { account, key }: Pick<AccountSlice, 'account' | 'key'>,
  command: AccountCommand,
): Decision<AccountEvent, Refusal> {
  if (command.type === 'OpenAccount') return account === null ? open(command) : accept()
  const { accountId, now } = command
  if (account === null) return refuse({ code: 'unknown-account' })
  if (account.closed !== null && !ENDING.has(command.type)) {
    return refuse({ code: 'account-closed', closedAt: account.closed.at })
  }

  if (command.type === 'SetDefaultFaults') {
    const { environment, faults, setBy } = command
    if (haveSameFaults(defaultFaultsOf(account, environment), faults)) return accept()
    return accept({ type: 'DefaultFaultsSet', accountId, environment, faults, setBy, setAt: now })
  }
  if (command.type === 'SetQuota') {
    const { plan, type: _, now: setAt, ...facts } = command
    const { quota, limit } = facts
    const max = maxOf(plan, quota)
    if (limit !== null && limit > max) return refuse({ code: 'over-plan', max })
    const before = account.quotas[quotaName(facts)]
    if (limit === (before?.limit ?? null)) return accept()
    if (before === undefined && Object.keys(account.quotas).length >= MAX_OWN_QUOTAS) {
      return refuse({ code: 'too-many-quotas', max: MAX_OWN_QUOTAS })
    }
    return accept({ type: 'QuotaSet', ...facts, setAt })
  }
  if (command.type === 'SetSignIn') {
    const { requiresProvider, setBy } = command
    if (requiresProvider === account.requiresProvider) return accept()
    return accept({ type: 'SignInSet', accountId, requiresProvider, setBy, setAt: now })
  }
  if (command.type === 'ChangePlan') {
    const { limits } = command
    const plan = command.plan.name
    if (limits !== null && !command.plan.isPerAccount) return refuse({ code: 'limits-not-per-account', plan })
    if (isOnPlan(account, { plan, limits })) return accept()
    return accept({ type: 'PlanChanged', accountId, plan, limits, changedAt: now })
  }
  if (command.type === 'SuspendAccount') {
    const facts = { accountId, suspendedBy: command.by, suspendedAt: now }
    return account.suspendedAt === null ? accept({ type: 'AccountSuspended', ...facts }) : accept()
  }
  if (command.type === 'ResumeAccount') {
    const facts = { accountId, resumedBy: command.by, resumedAt: now }
    return account.suspendedAt === null ? accept() : accept({ type: 'AccountResumed', ...facts })
  }
  if (command.type === 'CloseAccount') {
    const { by: closedBy, environment } = command
    if (account.closed !== null) return accept()
    return accept({ type: 'AccountClosed', accountId, environment, closedBy, closedAt: now })
  }
  if (command.type === 'RecordErasure') {
    if (account.closed === null || account.erasedAt !== null) return accept()
    return accept({ type: 'AccountErased', accountId, erasedAt: now })
  }
  if (command.type === 'IssueApiKey') return key === null ? issue(command) : accept()
  if (key?.accountId !== accountId) return refuse({ code: 'unknown-key' })

  const { keyId } = command
  switch (command.type) {
    case 'RotateApiKey': {
      const state = keyState(key, now)
      const endedAt = key.revokedAt ?? key.expiresAt
      if (state !== 'active' && endedAt !== null) return refuse({ code: 'key-ended', state, endedAt })
      const { secretHash, prefix, graceMs } = command
      if (graceMs > MAX_GRACE_MS) return refuse({ code: 'over-grace', maxMs: MAX_GRACE_MS })
      if (secretHash === key.secretHash || secretHash === key.former?.secretHash) return accept()
      if (!isPossibleExpiry(command.expiresAt ?? null, now)) return refuse(EXPIRY_OUT_OF_RANGE)
      const expiresAt = command.expiresAt === null ? ('never' as const) : (command.expiresAt ?? null)
      const rotation = key.rotation + 1
      const graceEndsAt = new Date(now.getTime() + graceMs)
      const facts = { accountId, keyId, rotation, secretHash, prefix, expiresAt }
      return accept({ type: 'ApiKeyRotated', ...facts, graceEndsAt, rotatedAt: now })
    }
    case 'RecordKeyExpiry': {
      const due = keyEventDue(key, now)
      if (due === null) return accept()
      if (due.type === 'expired') return accept({ type: 'ApiKeyExpired', accountId, keyId, expiredAt: now })
      const { expiresAt, daysLeft } = due
      return accept({ type: 'ApiKeyExpiring', accountId, keyId, expiresAt, daysLeft, notifiedAt: now })
    }
    case 'RevokeApiKey': {
      if (keyState(key, now) !== 'active') return accept()
      const { revokedBy } = command
      return accept({ type: 'ApiKeyRevoked', accountId, keyId, revokedBy, revokedAt: now })
    }
  }
}

function open(command: Extract<AccountCommand, { type: 'OpenAccount' }>): Decision<AccountEvent, Refusal> {
  const { accountId, name, limits, now } = command
  const plan = command.plan.name
  if (limits !== null && !command.plan.isPerAccount) return refuse({ code: 'limits-not-per-account', plan })
  return accept({ type: 'AccountOpened', accountId, name, plan, limits, openedAt: now })
}

function issue(command: Extract<AccountCommand, { type: 'IssueApiKey' }>): Decision<AccountEvent, Refusal> {
  const { plan, activeKeys, now, ...facts } = command
  const { requestsPerMinute } = plan
  if (!plan.hasApiAccess) return refuse({ code: 'plan-lacks-api-access', plan: plan.name })
  if (facts.rateLimit !== null && facts.rateLimit > requestsPerMinute) {
    return refuse({ code: 'over-rate-limit', requestsPerMinute })
  }
  if (!isPossibleExpiry(facts.expiresAt, now)) return refuse(EXPIRY_OUT_OF_RANGE)
  if (activeKeys >= MAX_ACTIVE_KEYS) return refuse({ code: 'too-many-keys', max: MAX_ACTIVE_KEYS })
  return accept({ ...facts, type: 'ApiKeyIssued', issuedAt: now })
}

const EXPIRY_OUT_OF_RANGE = { code: 'expiry-out-of-range', maxDays: MAX_KEY_DAYS } as const

function isPossibleExpiry(expiresAt: Date | null, now: Date): boolean {
  return expiresAt === null || (expiresAt > now && expiresAt <= daysAfter(now, MAX_KEY_DAYS))
}
