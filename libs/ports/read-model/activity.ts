import type { Account, AccountSlice, ApiKey } from '#libs/domain/account/account.js'
import type { ConsoleSession } from '#libs/domain/account/console-sessions.js'
import { catchAll, type Domain } from '#libs/domain/account/domain.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { isMemberEvent, PERMISSIONS, type Member } from '#libs/domain/account/member.js'
import { personalText, type PersonalText } from '#libs/domain/account/personal-data.js'
import { snakeCase } from '#libs/domain/event-sourcing/declare.js'
import type { EventId, KeyId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { faults } from '#libs/domain/inbox/fault.js'
import { present, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { EventOrigin } from '#libs/ports/event-log/cloud-event.js'
import type { LoggedEvent } from './views.js'

/*
 * The activity of an account: who changed what. Of account events it is projected here, since what an event has changed
 * follows from the rows before and after it; of inboxes it is a part of their history.
 */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** Both values are null if the field is named only. */
export interface VisibleChange {
  field: string
  from: Json
  to: Json
}

export interface ActivityEntry {
  /** In the partition of the event. */
  offset: number
  id: EventId
  type: AccountEvent['type'] | InboxEvent['type']
  time: Date
  /** The id of what was changed. */
  subject: string
  /** Of what was changed; null if that is of the whole account. */
  environment: string | null
  keyId: KeyId | null
  /** The member, inbox token or session that was used; null if the key itself was. */
  actor: string | null
  /** Absent if no request of the API caused it. */
  origin?: EventOrigin
  /** Whether the event had an effect. Of two that exclude each other, the later one on the log has none. */
  isEffective: boolean
  changes: readonly VisibleChange[]
}

/** What an event is about, without hashes, secrets and URLs. Personal data is sealed. */
interface Subject {
  id: string
  environment: string | null
  /** No fields if there is no row. */
  fields: Readonly<Record<string, unknown>>
}

/** Without the hash. */
const sealedField = (stored: PersonalText) =>
  personalText.encode(typeof stored === 'string' ? stored : { ...stored, hash: null })

export function fieldsOfAccount(account: Account) {
  const { limits, quotas, defaultFaults } = account
  return {
    ...{ name: sealedField(account.name), plan: account.plan },
    ...Object.fromEntries(
      Object.entries(limits ?? {}).map(([name, limit]) => [
        `limits.${snakeCase(name)}`,
        typeof limit === 'object' ? limit.text : limit,
      ]),
    ),
    sign_in: account.requiresProvider ? 'provider' : 'any',
    ...{ suspended_at: account.suspendedAt, closed_at: account.closed?.at, erased_at: account.erasedAt },
    ...Object.fromEntries(
      Object.values(quotas).map(({ quota, scope, limit }) => [
        ['quotas', quota, scope.environment ?? scope.keyId ?? []].flat().join('.'),
        limit,
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(defaultFaults).map(([environment, own]) => [
        `faults.${environment}`,
        faults.encode(own),
      ]),
    ),
  }
}

export const fieldsOfKey = (key: ApiKey) => ({
  ...{ name: key.name, environment: key.environment, scopes: key.scopes, owner: key.owner },
  ...{ rate_limit: key.rateLimit, expires_at: key.expiresAt, revoked_at: key.revokedAt },
  ...{ expired_at: key.expiredAt, rotations: key.rotation },
})

export const fieldsOfMember = (member: Member) => ({
  ...{
    email: sealedField(member.email),
    state: member.state,
    role: member.role,
    environments: member.environments,
  },
  permissions: member.readsMail ? PERMISSIONS : [],
  ...{ issuer: member.identity?.issuer, invited_until: member.expiresAt },
})

/** Whose it is, and who has made its link, so that nobody acts as somebody else unseen. */
const fieldsOfSession = (session: ConsoleSession) => ({
  ...{ member_id: session.memberId, link_by: session.offeredBy, state: session.state },
  ...{ with_provider: session.isIdentified, expires_at: session.expiresAt },
})

export const fieldsOfDomain = (domain: Domain) => ({
  ...{ name: domain.name, environment: domain.environment, hosted: domain.isHosted, state: domain.state },
  ...{ subdomains: domain.subdomains, catch_all: catchAll.encode(domain.catchAll) },
})

export const fieldsOfWebhook = (webhook: Webhook) => ({
  ...{ environment: webhook.environment, inbox_id: webhook.inboxId, events: webhook.events },
  ...{ state: webhook.state, disabled_reason: webhook.disabledReason, rotations: webhook.rotation },
})

function subjectOf(event: AccountEvent, slice: AccountSlice): Subject {
  const { account, key, member } = slice
  const ofAccount = { environment: null }
  if ('webhookId' in event) {
    const webhook = present(slice.webhook)
    const environment = webhook?.environment ?? null
    return { id: event.webhookId, environment, fields: webhook === null ? {} : fieldsOfWebhook(webhook) }
  }
  if ('domainId' in event) {
    const domain = present(slice.domain)
    const environment = domain?.environment ?? null
    return { id: event.domainId, environment, fields: domain === null ? {} : fieldsOfDomain(domain) }
  }
  if ('sessionId' in event) {
    const session = account?.consoleSessions.find(({ id }) => id === event.sessionId)
    return {
      ...ofAccount,
      id: event.sessionId,
      fields: session === undefined ? {} : fieldsOfSession(session),
    }
  }
  if ('memberId' in event) {
    return { ...ofAccount, id: event.memberId, fields: member === null ? {} : fieldsOfMember(member) }
  }
  if ('keyId' in event) {
    const environment = key?.environment ?? null
    return { id: event.keyId, environment, fields: key === null ? {} : fieldsOfKey(key) }
  }
  const environment =
    event.type === 'QuotaSet' ? event.scope.environment : 'faults' in event ? event.environment : null
  return { id: event.accountId, environment, fields: account === null ? {} : fieldsOfAccount(account) }
}

/** Null for what Mayfly did itself without a change to show, such as a check of a domain that found the same. */
export function activityOf(
  { offset, id, time, keyId, actor, origin, event }: LoggedEvent<AccountEvent>,
  before: AccountSlice,
  after: AccountSlice,
): ActivityEntry | null {
  const [former, subject] = [subjectOf(event, before), subjectOf(event, after)]
  const changes = changesBetween(former.fields, subject.fields)
  if (event.type === 'WebhookChanged' && event.url !== null && before !== after) {
    changes.push({ field: 'url', from: null, to: null })
  }
  if (keyId === null && actor === null && changes.length === 0) return null
  return {
    ...{ offset, id, type: event.type, time, subject: subject.id, keyId, actor },
    // What was removed has no row any more.
    environment: subject.environment ?? former.environment,
    ...(origin === undefined ? {} : { origin }),
    // An event about a member counts as a revision, also if it is ignored.
    isEffective: changes.length > 0 || (before !== after && !isMemberEvent(event)),
    changes,
  }
}

function changesBetween(before: Subject['fields'], after: Subject['fields']): VisibleChange[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].flatMap((field) => {
    const [from, to] = [jsonOf(before[field]), jsonOf(after[field])]
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ field, from, to }]
  })
}

function jsonOf(value: unknown): Json {
  return JSON.parse(JSON.stringify(value ?? null)) as Json
}
