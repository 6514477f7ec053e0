import type { AccountLimits } from './access.js'
import type { AccountId, KeyId, MemberId } from '#libs/domain/ids/typeid.js'
import { haveSameFaults, type Fault } from '#libs/domain/inbox/fault.js'
import { evolve as evolveWebhook, type WebhookEntry } from '#libs/domain/webhook/webhook.js'
import { evolveSessions, type ConsoleSession } from './console-sessions.js'
import { evolveDomain, type DomainSlice } from './domain.js'
import { evolveMember, isMember, isMemberEvent, type Member, type MemberEvent } from './member.js'
import { keyState, noticesOf, type KeyLife } from './key-expiry.js'
import { MAX_OWN_QUOTAS, quotaName, type OwnQuotas } from './quota.js'
import type { AccountEvent, AccountOpened, ApiKeyIssued, ApiKeyRotated, PlanChanged } from './events.js'

/** An account on its current plan. */
export interface Account extends Omit<AccountOpened, 'type' | 'accountId'> {
  id: AccountId
  /** In the order of their creation, including some that have ended. */
  consoleSessions: readonly ConsoleSession[]
  /** The members who have joined with that role. */
  owners: readonly MemberId[]
  /** The faults of new inboxes, by environment. */
  defaultFaults: Readonly<Record<string, readonly Fault[]>>
  /** Those that the account has set for itself. */
  quotas: OwnQuotas
  /** Whether people can sign in to the console only with an identity provider. */
  requiresProvider: boolean
  /** Null unless it is suspended or closed. */
  suspendedAt: Date | null
  /** Null unless it is closed. */
  closed: { by: KeyId; environment: string; at: Date } | null
  /** When all of the closed account had ended. */
  erasedAt: Date | null
}

/** An API key with its current secret. */
export interface ApiKey extends Omit<ApiKeyIssued, 'type' | 'keyId'>, KeyLife {
  id: KeyId
  /** How often the secret was rotated. */
  rotation: number
  /** The previous secret. Older ones are invalid: a key never has more than two valid secrets. */
  former: FormerSecret | null
}

export interface FormerSecret {
  secretHash: string
  /** It is invalid from then on. */
  graceEndsAt: Date
}

/** The part of an account's state that one event can change. */
export interface AccountSlice extends DomainSlice {
  account: Account | null
  key: ApiKey | null
  webhook: WebhookEntry
  member: Member | null
}

/** Total and idempotent: for a repeated or misplaced event, returns the same slice object. */
export function evolve(slice: AccountSlice, event: AccountEvent): AccountSlice {
  const { account, key, webhook } = slice
  if ('webhookId' in event) {
    const after = account === null ? webhook : evolveWebhook(webhook, event)
    return after === webhook ? slice : { ...slice, webhook: after }
  }
  if ('domainId' in event) {
    const { domain, holder } = account === null ? slice : evolveDomain(slice, event)
    return domain === slice.domain && holder === slice.holder ? slice : { ...slice, domain, holder }
  }
  if (isMemberEvent(event)) return account === null ? slice : withMember(slice, account, event)
  if ('sessionId' in event) {
    if (account === null) return slice
    const consoleSessions = evolveSessions(account.consoleSessions, event)
    if (consoleSessions === account.consoleSessions) return slice
    return { ...slice, account: { ...account, consoleSessions } }
  }
  switch (event.type) {
    case 'AccountOpened': {
      if (account !== null) return slice
      const { type: _type, accountId: id, ...facts } = event
      const empty = {
        consoleSessions: [],
        owners: [],
        defaultFaults: {},
        quotas: {},
        requiresProvider: false,
        suspendedAt: null,
        closed: null,
        erasedAt: null,
      }
      return { ...slice, account: { ...facts, id, ...empty } }
    }
    case 'PlanChanged': {
      if (account === null || isOnPlan(account, event)) return slice
      const { plan, limits } = event
      return { ...slice, account: { ...account, plan, limits } }
    }
    case 'AccountSuspended':
      if (account === null || account.suspendedAt !== null) return slice
      return { ...slice, account: { ...account, suspendedAt: event.suspendedAt } }
    case 'AccountResumed':
      if (account === null || account.suspendedAt === null || account.closed !== null) return slice
      return { ...slice, account: { ...account, suspendedAt: null } }
    case 'AccountClosed': {
      if (account === null || account.closed !== null) return slice
      const { closedBy: by, environment, closedAt: at } = event
      const closed = { by, environment, at }
      return { ...slice, account: { ...account, suspendedAt: account.suspendedAt ?? at, closed } }
    }
    case 'AccountErased':
      if (account === null || account.closed === null || account.erasedAt !== null) return slice
      return { ...slice, account: { ...account, erasedAt: event.erasedAt } }
    case 'DefaultFaultsSet': {
      if (account === null || haveSameFaults(defaultFaultsOf(account, event.environment), event.faults)) {
        return slice
      }
      const { [event.environment]: _, ...others } = account.defaultFaults
      const own = event.faults.length === 0 ? {} : { [event.environment]: event.faults }
      return { ...slice, account: { ...account, defaultFaults: { ...others, ...own } } }
    }
    case 'SignInSet': {
      const { requiresProvider } = event
      if (account === null || account.requiresProvider === requiresProvider) return slice
      return { ...slice, account: { ...account, requiresProvider } }
    }
    case 'QuotaSet': {
      const { quota, scope, limit } = event
      const name = quotaName(event)
      if (account === null || (account.quotas[name]?.limit ?? null) === limit) return slice
      const { [name]: before, ...others } = account.quotas
      if (limit === null) return { ...slice, account: { ...account, quotas: others } }
      // Concurrent requests may have set more than `decide` allows. The first ones count.
      if (before === undefined && Object.keys(others).length >= MAX_OWN_QUOTAS) return slice
      const quotas = { ...account.quotas, [name]: { quota, scope, limit } }
      return { ...slice, account: { ...account, quotas } }
    }
    case 'ApiKeyIssued': {
      if (account === null || key !== null) return slice
      const { type: _type, keyId, ...facts } = event
      const ends = { revokedAt: null, expiredAt: null, notices: noticesOf(facts.expiresAt, facts.issuedAt) }
      return { ...slice, key: { ...facts, id: keyId, rotation: 0, former: null, ...ends } }
    }
    case 'ApiKeyRotated':
      // If two rotations replace the same secret, the first one on the log wins.
      if (!isOpen(key) || event.rotation !== key.rotation + 1) return slice
      return { ...slice, key: rotated(key, event) }
    case 'ApiKeyRevoked':
      if (!isOpen(key)) return slice
      return { ...slice, key: { ...key, former: null, revokedAt: event.revokedAt } }
    case 'ApiKeyExpiring': {
      if (!isOpen(key) || key.expiresAt?.getTime() !== event.expiresAt.getTime()) return slice
      const notices = key.notices.filter((days) => days < event.daysLeft)
      return notices.length === key.notices.length ? slice : { ...slice, key: { ...key, notices } }
    }
    case 'ApiKeyExpired':
      // A rotation may have changed when it expires.
      if (!isOpen(key) || keyState(key, event.expiredAt) !== 'expired') return slice
      return { ...slice, key: { ...key, former: null, expiredAt: event.expiredAt, notices: [] } }
  }
}

function withMember(slice: AccountSlice, account: Account, event: MemberEvent): AccountSlice {
  const { member, owners } = evolveMember(
    { member: slice.member, owners: account.owners },
    event,
    account.closed !== null,
  )
  if (member === slice.member) return slice
  const hasJoined = event.type === 'MemberJoined' && member?.joinedAt !== slice.member?.joinedAt
  const consoleSessions =
    hasJoined && member !== null && event.session !== null
      ? evolveSessions(account.consoleSessions, {
          type: 'ConsoleSessionStarted',
          ...{
            accountId: account.id,
            memberId: member.id,
            startedBy: member.usageKeyId,
            isIdentified: false,
          },
          ...{ sessionId: event.session.id, secretHash: event.session.secretHash },
          ...{ startedAt: event.joinedAt, expiresAt: event.session.expiresAt },
        })
      : account.consoleSessions
  const isSame = owners === account.owners && consoleSessions === account.consoleSessions
  return { ...slice, member, account: isSame ? account : { ...account, owners, consoleSessions } }
}

export function defaultFaultsOf({ defaultFaults }: Account, environment: string): readonly Fault[] {
  return Object.hasOwn(defaultFaults, environment) ? (defaultFaults[environment] ?? []) : []
}

/** Whether the key is neither revoked nor recorded as expired. */
function isOpen(key: ApiKey | null): key is ApiKey {
  return key !== null && key.revokedAt === null && key.expiredAt === null
}

/** The member that a personal key belongs to; null for a service key. */
export function memberIdOf({ owner, createdBy }: Pick<ApiKey, 'owner' | 'createdBy'>): MemberId | null {
  return owner === 'personal' && createdBy !== null && isMember(createdBy) ? createdBy : null
}

/** Whether it is a personal key of someone who is no longer a member: then it is invalid. */
export function isOrphaned(key: ApiKey, member: Member | null): boolean {
  return key.owner === 'personal' && member?.state !== 'active'
}

/** Whether a secret of the key, current or previous, is still valid. */
export function isValidSecret(key: ApiKey, secretHash: string, now: Date): boolean {
  if (keyState(key, now) !== 'active') return false
  if (key.secretHash === secretHash) return true
  return key.former?.secretHash === secretHash && now < key.former.graceEndsAt
}

function textOf(limits: AccountLimits | null): string {
  return JSON.stringify(Object.entries(limits ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Whether the account already has this plan and these limits. */
export function isOnPlan(account: Account, { plan, limits }: Pick<PlanChanged, 'plan' | 'limits'>): boolean {
  return account.plan === plan && textOf(account.limits) === textOf(limits)
}

function rotated(key: ApiKey, event: ApiKeyRotated): ApiKey {
  const { secretHash, prefix, rotation, graceEndsAt, rotatedAt } = event
  const expiresAt = event.expiresAt === 'never' ? null : (event.expiresAt ?? key.expiresAt)
  const notices = event.expiresAt === null ? key.notices : noticesOf(expiresAt, rotatedAt)
  const former = { secretHash: key.secretHash, graceEndsAt }
  return { ...key, secretHash, prefix, rotation, former, expiresAt, notices }
}
