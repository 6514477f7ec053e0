import { accept, refuse, type Decision } from '#libs/domain/events/declare.js'
import type { AccountId, KeyId } from '#libs/domain/ids/typeid.js'
import { isOnPlan, type AccountSlice } from './account.js'
import { type AccountLimits, type Plan, LONGEST_GRACE_MS } from './access.js'
import type { AccountEvent, AccountOpened, ApiKeyIssued } from './events.js'

/** Keys of one account that are not revoked. */
export const MAX_ACTIVE_KEYS = 1_000

export type AccountCommand =
  | (Pick<AccountOpened, 'accountId' | 'name' | 'limits'> & { type: 'OpenAccount'; plan: Plan; now: Date })
  | { type: 'ChangePlan'; accountId: AccountId; plan: Plan; limits: AccountLimits | null; now: Date }
  | (Omit<ApiKeyIssued, 'type' | 'issuedAt'> & {
      type: 'IssueApiKey'
      /** As it is for this account. */
      plan: Plan
      /** Of the account, as the view has them. */
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
      now: Date
    }
  | { type: 'RevokeApiKey'; accountId: AccountId; keyId: KeyId; revokedBy: KeyId; now: Date }

/** Why a command was refused; an expected answer, not an error. */
export type Refusal =
  | { code: 'unknown-account' }
  | { code: 'limits-not-per-account'; plan: string }
  | { code: 'plan-lacks-api-access'; plan: string }
  | { code: 'over-rate-limit'; requestsPerMinute: number }
  | { code: 'too-many-keys'; most: number }
  | { code: 'unknown-key' }
  | { code: 'key-revoked'; revokedAt: Date }
  | { code: 'over-grace'; mostMs: number }

/**
 * What a command leads to, checked against the view, which may lag: order on the log arbitrates. No event and no
 * refusal: it already is as the command wants it, also where a command with the same ids comes again.
 */
export function decide(
  { account, key }: Pick<AccountSlice, 'account' | 'key'>,
  command: AccountCommand,
): Decision<AccountEvent, Refusal> {
  if (command.type === 'OpenAccount') return account === null ? open(command) : accept()
  const { accountId, now } = command
  if (account === null) return refuse({ code: 'unknown-account' })

  if (command.type === 'ChangePlan') {
    const { limits } = command
    const plan = command.plan.name
    if (limits !== null && !command.plan.isPerAccount) return refuse({ code: 'limits-not-per-account', plan })
    if (isOnPlan(account, { plan, limits })) return accept()
    return accept({ type: 'PlanChanged', accountId, plan, limits, changedAt: now })
  }
  if (command.type === 'IssueApiKey') return key === null ? issue(command) : accept()
  if (key?.accountId !== accountId) return refuse({ code: 'unknown-key' })

  const { keyId } = command
  switch (command.type) {
    case 'RotateApiKey': {
      if (key.revokedAt !== null) return refuse({ code: 'key-revoked', revokedAt: key.revokedAt })
      const { secretHash, prefix, graceMs } = command
      if (graceMs > LONGEST_GRACE_MS) return refuse({ code: 'over-grace', mostMs: LONGEST_GRACE_MS })
      if (secretHash === key.secretHash || secretHash === key.former?.secretHash) return accept()
      const rotation = key.rotation + 1
      const graceEndsAt = new Date(now.getTime() + graceMs)
      const facts = { accountId, keyId, rotation, secretHash, prefix }
      return accept({ type: 'ApiKeyRotated', ...facts, graceEndsAt, rotatedAt: now })
    }
    case 'RevokeApiKey': {
      if (key.revokedAt !== null) return accept()
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
  if (activeKeys >= MAX_ACTIVE_KEYS) return refuse({ code: 'too-many-keys', most: MAX_ACTIVE_KEYS })
  return accept({ ...facts, type: 'ApiKeyIssued', issuedAt: now })
}
