import type { Account, AccountSlice, ApiKey } from '#libs/domain/account/account.js'
import type { Domain } from '#libs/domain/account/domain.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { isMemberEvent, type Member } from '#libs/domain/account/member.js'
import type { EventId, KeyId } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { present, type Webhook } from '#libs/domain/webhook/webhook.js'
import type { EventOrigin } from '#libs/ports/event-log/cloud-event.js'
import type { LoggedEvent } from './views.js'

/*
 * The activity of an account: who changed what. Of account events it is projected here, since what an event has changed
 * follows from the rows before and after it; of inboxes it is a part of their history.
 */

/** A value as it is shown: JSON. */
export type Shown = string | number | boolean | null | readonly Shown[] | { readonly [name: string]: Shown }

export interface ShownChange {
  field: string
  from: Shown
  to: Shown
}

export interface ActivityEntry {
  /** Of its partition. */
  offset: number
  id: EventId
  type: AccountEvent['type'] | InboxEvent['type']
  time: Date
  /** The id of what was changed. */
  subject: string
  environment: string
  keyId: KeyId | null
  /** As in LoggedEvent. */
  actor: string | null
  /** Absent if no request of the API caused it. */
  origin?: EventOrigin
  /** Whether the event had an effect. Of two that exclude each other, the later one on the log has none. */
  isEffective: boolean
  changes: readonly ShownChange[]
}

type ShownFields = Record<string, unknown>

/** What is shown of each kind of row: the same names and values as in the API, without hashes, secrets and URLs. */
const shownOfAccount = (account: Account): ShownFields => ({
  name: account.name,
  plan: account.plan,
  limits: account.limits && { ...account.limits, retention: account.limits.retention?.text },
  sign_in: account.requiresProvider ? 'provider' : 'any',
  suspended_at: account.suspendedAt,
  closed_at: account.closed?.at ?? null,
  erased_at: account.erasedAt,
  ...named('quota', account.quotas, ({ limit }) => limit),
  ...named('default faults of', account.defaultFaults, (faults) => faults),
})
const shownOfKey = (key: ApiKey): ShownFields => ({
  name: key.name,
  environment: key.environment,
  scopes: key.scopes,
  owner: key.owner,
  rate_limit: key.rateLimit,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  rotations: key.rotation,
})
const shownOfMember = (member: Member): ShownFields => ({
  email: member.email,
  state: member.state,
  role: member.role,
  environments: member.environments,
  permissions: member.readsMail ? ['content:read'] : [],
  issuer: member.identity?.issuer ?? null,
  invited_until: member.expiresAt,
})
const shownOfDomain = (domain: Domain): ShownFields => ({
  name: domain.name,
  environment: domain.environment,
  hosted: domain.isHosted,
  state: domain.state,
  subdomains: domain.subdomains,
  catch_all: domain.catchAll.action,
})
const shownOfWebhook = (webhook: Webhook): ShownFields => ({
  environment: webhook.environment,
  inbox_id: webhook.inboxId,
  events: webhook.events,
  state: webhook.state,
  rotations: webhook.rotation,
})

function named<Value>(
  name: string,
  values: Readonly<Record<string, Value>>,
  show: (value: Value) => unknown,
): ShownFields {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [`${name} ${key}`, show(value)]))
}

/** The id of what an event is about, and what is shown of its row; nothing if there is no row. */
function subjectOf(event: AccountEvent, slice: AccountSlice): { id: string; shown: ShownFields } {
  const { account, key, member } = slice
  if ('webhookId' in event) {
    const webhook = present(slice.webhook)
    return { id: event.webhookId, shown: webhook === null ? {} : shownOfWebhook(webhook) }
  }
  if ('domainId' in event) {
    const domain = present(slice.domain)
    return { id: event.domainId, shown: domain === null ? {} : shownOfDomain(domain) }
  }
  // A session has nothing to show, and its member, if it has one, does not change.
  if ('sessionId' in event) return { id: event.sessionId, shown: {} }
  if ('memberId' in event) return { id: event.memberId, shown: member === null ? {} : shownOfMember(member) }
  if ('keyId' in event) return { id: event.keyId, shown: key === null ? {} : shownOfKey(key) }
  return { id: event.accountId, shown: account === null ? {} : shownOfAccount(account) }
}

/** Null for what Mayfly did itself without a change to show, such as a check of a domain that found the same. */
export function activityOf(
  { offset, id, time, environment, keyId, actor, origin, event }: LoggedEvent<AccountEvent>,
  before: AccountSlice,
  after: AccountSlice,
): ActivityEntry | null {
  const subject = subjectOf(event, after)
  const changes = changesBetween(subjectOf(event, before).shown, subject.shown)
  if (event.type === 'WebhookChanged' && event.url !== null)
    changes.push({ field: 'url', from: null, to: null })
  if (keyId === null && actor === null && changes.length === 0) return null
  return {
    ...{ offset, id, type: event.type, time, subject: subject.id, environment, keyId, actor },
    ...(origin === undefined ? {} : { origin }),
    // An event about a member counts as a revision, also if it is ignored.
    isEffective: changes.length > 0 || (before !== after && !isMemberEvent(event)),
    changes,
  }
}

function changesBetween(before: ShownFields, after: ShownFields): ShownChange[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].flatMap((field) => {
    const [from, to] = [shown(before[field]), shown(after[field])]
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ field, from, to }]
  })
}

function shown(value: unknown): Shown {
  return JSON.parse(JSON.stringify(value ?? null)) as Shown
}
