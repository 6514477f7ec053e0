import fc from 'fast-check'
import { anyEventOf } from '#libs/domain/event-sourcing/any-event.test-support.js'
import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import {
  idFromBytes,
  type AccountId,
  type ConsoleSessionId,
  type DomainId,
  type KeyId,
  type MemberId,
  type WebhookId,
} from '#libs/domain/ids/typeid.js'
import { REMOVED, type WebhookEntry } from '#libs/domain/webhook/webhook.js'
import { isCaused } from '#libs/domain/webhook/webhook.test-support.js'
import { BUILT_IN_PLANS, type Plan } from './access.js'
import { evolve, type Account, type AccountSlice, type ApiKey } from './account.js'
import { decide, type AccountCommand } from './decide.js'
import { isMemberEvent, type Member } from './member.js'
import { holdsName, type DomainEntry } from './domain.js'
import {
  ACCOUNT_EVENTS,
  type AccountEvent,
  type AccountOpened,
  type ApiKeyIssued,
  type ApiKeyRevoked,
  type ApiKeyRotated,
} from './events.js'

/** An account with all its keys, webhooks and domains, after a history of events. */
export interface AccountView {
  account: Account | null
  keys: ReadonlyMap<KeyId, ApiKey>
  webhooks: ReadonlyMap<WebhookId, WebhookEntry>
  domains: ReadonlyMap<DomainId, DomainEntry>
  members: ReadonlyMap<MemberId, Member>
}

export const NOTHING: AccountView = {
  account: null,
  keys: new Map(),
  webhooks: new Map(),
  domains: new Map(),
  members: new Map(),
}

export function sliceFor(
  { account, keys, webhooks, domains, members }: AccountView,
  what: AccountEvent | AccountCommand,
): AccountSlice {
  return {
    account,
    key: 'keyId' in what ? (keys.get(what.keyId) ?? null) : null,
    webhook: 'webhookId' in what ? (webhooks.get(what.webhookId) ?? null) : null,
    member: isMemberEvent(what) ? (members.get(what.memberId) ?? null) : null,
    domain: 'domainId' in what ? (domains.get(what.domainId) ?? null) : null,
    holder:
      [...domains.values()]
        .filter((each) => each !== null && each !== REMOVED)
        .filter((each) => 'domainId' in what && each.id !== what.domainId)
        .find((each) => 'name' in what && each.name === what.name && holdsName(each)) ?? null,
  }
}

/** `given(opened, issued).when(rotate(at)).then([rotated(at)])` */
export const { given, replay } = specificationOf({
  initial: NOTHING,
  evolve: step,
  decide: (view, command: AccountCommand) => decide(sliceFor(view, command), command),
})

function step(view: AccountView, event: AccountEvent): AccountView {
  const { account, key, webhook, member, domain, holder } = evolve(sliceFor(view, event), event)
  const domains = new Map(view.domains)
  if ('domainId' in event) domains.set(event.domainId, domain)
  if (holder !== null) domains.set(holder.id, holder)
  return {
    account,
    keys: key === null ? view.keys : new Map(view.keys).set(key.id, key),
    webhooks: 'webhookId' in event ? new Map(view.webhooks).set(event.webhookId, webhook) : view.webhooks,
    domains,
    members: member === null ? view.members : new Map(view.members).set(member.id, member),
  }
}

export const ACCOUNT_ID: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))
export const KEY_ID: KeyId = idFromBytes('key', Buffer.alloc(16, 2))

/** Some days after the example's account was opened. */
export const day = (days: number): Date => new Date(Date.UTC(2026, 0, 1) + days * 86_400_000)
export const hash = (digit: string): string => digit.repeat(64)

export function planNamed(name: string): Plan {
  const plan = BUILT_IN_PLANS.get(name)
  if (plan === undefined) throw new Error(`no plan is called ${name}`)
  return plan
}

export const opened: AccountOpened = {
  type: 'AccountOpened',
  accountId: ACCOUNT_ID,
  name: 'Acme',
  plan: 'pro',
  limits: null,
  openedAt: day(0),
}

export const KEY_FACTS = {
  accountId: ACCOUNT_ID,
  keyId: KEY_ID,
  name: 'CI',
  environment: 'staging',
  scopes: ['inboxes'] as const,
  rateLimit: null,
  expiresAt: null,
  owner: 'service' as const,
  createdBy: null,
  secretHash: hash('0'),
  prefix: 'mf_staging_k3v9',
}

export const issued: ApiKeyIssued = { type: 'ApiKeyIssued', ...KEY_FACTS, issuedAt: day(1) }

export function rotated(rotation: number, rotatedAt: Date, graceEndsAt: Date): ApiKeyRotated {
  return {
    type: 'ApiKeyRotated',
    accountId: ACCOUNT_ID,
    keyId: KEY_ID,
    rotation,
    secretHash: hash(String(rotation)),
    prefix: `mf_staging_${rotation}`,
    graceEndsAt,
    expiresAt: null,
    rotatedAt,
  }
}

export function revoked(revokedAt: Date): ApiKeyRevoked {
  return { type: 'ApiKeyRevoked', accountId: ACCOUNT_ID, keyId: KEY_ID, revokedBy: KEY_ID, revokedAt }
}

const values = {
  account_id: fc.constant(ACCOUNT_ID),
  environment: fc.constantFrom('development', 'staging'),
  retention: fc.constantFrom('30m', '24h', '30d'),
  revision: fc.integer({ min: 1, max: 3 }),
  name: fc.constantFrom('acme.example', 'example.org'),
}
const anyOpened = anyEventOf({ AccountOpened: ACCOUNT_EVENTS.AccountOpened }, values)

/** Events of one account and a few keys, sessions and webhooks, so that events about the same one occur. */
export const anyAccountEvent = anyEventOf(ACCOUNT_EVENTS, values)

export const anyAccountSequence = fc.array(anyAccountEvent, { maxLength: 12 })

/** Histories that a log may contain: events about an account, key, session, webhook or rotation come after its creation. */
export const anyAccountHistory = fc
  .tuple(anyOpened, anyAccountSequence)
  .map(([first, rest]): AccountEvent[] => [first, ...withCauses(rest)])

function withCauses(events: readonly AccountEvent[]): AccountEvent[] {
  const rotations = new Map<KeyId, number>()
  const sessions = new Set<ConsoleSessionId>()
  const members = new Map<MemberId, number>()
  const domains = new Map<DomainId, { name: string; revision: number }>()
  const isCausedRegistration = isCaused()
  let isClosed = false
  return events.filter((event) => {
    if (event.type === 'AccountErased') return isClosed
    if (event.type === 'AccountClosed') isClosed = true
    if ('webhookId' in event) return isCausedRegistration(event)
    if ('domainId' in event) {
      const domain = domains.get(event.domainId)
      if (event.type === 'DomainRegistered') {
        if (domain === undefined) domains.set(event.domainId, { name: event.name, revision: 0 })
        return true
      }
      if (domain === undefined) return false
      if (event.type === 'DomainRemoved') return true
      if ('name' in event && event.name !== domain.name) return false
      if (event.revision > domain.revision + 1) return false
      domain.revision = Math.max(domain.revision, event.revision)
      return true
    }
    if (isMemberEvent(event)) {
      const revision = members.get(event.memberId)
      if (event.type === 'MemberInvited') {
        if (revision === undefined) members.set(event.memberId, 0)
        return true
      }
      if (revision === undefined || event.revision > revision + 1) return false
      members.set(event.memberId, Math.max(revision, event.revision))
      return true
    }
    if ('sessionId' in event) {
      if (event.type !== 'ConsoleSessionEnded') sessions.add(event.sessionId)
      return sessions.has(event.sessionId)
    }
    if (!('keyId' in event)) return true
    const { type, keyId } = event
    const known = rotations.get(keyId)
    if (type === 'ApiKeyIssued') {
      if (known === undefined) rotations.set(keyId, 0)
      return true
    }
    if (known === undefined) return false
    if (event.type !== 'ApiKeyRotated') return true
    if (event.rotation > known + 1) return false
    rotations.set(keyId, Math.max(known, event.rotation))
    return true
  })
}
