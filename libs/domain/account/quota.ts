import * as field from '#libs/domain/event-sourcing/declare.js'
import type { KeyId } from '#libs/domain/ids/typeid.js'

/**
 * Each quota: the limit of plans that sets it, the most that a plan may allow, what counts, and whether it begins again at
 * midnight UTC.
 */
const KINDS = {
  inboxes: { limit: 'maxInboxes', most: 10_000_000, unit: 'active inboxes', isDaily: false },
  'inboxes-per-day': {
    limit: 'maxInboxesPerDay',
    most: 1_000_000_000,
    unit: 'inboxes created today (UTC)',
    isDaily: true,
  },
  'messages-per-day': {
    limit: 'maxMessagesPerDay',
    most: 1_000_000_000,
    unit: 'messages received today (UTC)',
    isDaily: true,
  },
  'stored-bytes': {
    limit: 'maxStoredBytes',
    most: 2 ** 40,
    unit: "bytes in the sources of active inboxes' mail",
    isDaily: false,
  },
  webhooks: { limit: 'maxWebhooks', most: 100_000, unit: 'webhooks of environments', isDaily: false },
  domains: { limit: 'maxDomains', most: 1_000, unit: 'domains', isDaily: false },
  members: { limit: 'maxMembers', most: 1_000, unit: 'members and invitations', isDaily: false },
} as const

export type Quota = keyof typeof KINDS
export const QUOTAS = Object.keys(KINDS) as [Quota, ...Quota[]]

/** Those of inboxes and their mail. Only these can be set for an environment or a key. */
export const MAIL_QUOTAS = [
  'inboxes',
  'inboxes-per-day',
  'messages-per-day',
  'stored-bytes',
] as const satisfies Quota[]
export type MailQuota = (typeof MAIL_QUOTAS)[number]
export type CountedQuota = Exclude<Quota, MailQuota>

/** How much something uses of each quota that is named. */
export type QuotaAmounts = Partial<Record<MailQuota, number>>

export function usedByInboxes(count: number): QuotaAmounts {
  return { inboxes: count, 'inboxes-per-day': count }
}

/** A mail of this size for one inbox. */
export function usedByMail(bytes: number): QuotaAmounts {
  return { 'messages-per-day': 1, 'stored-bytes': bytes }
}

export function isMailQuota(quota: Quota): quota is MailQuota {
  return (MAIL_QUOTAS as readonly Quota[]).includes(quota)
}

/** One value for each limit of plans that sets a quota. */
export type PerLimit<Value> = Record<(typeof KINDS)[Quota]['limit'], Value>

/** What makes a value of each limit from the kind of its quota. */
export function perLimit<Value>(make: (kind: QuotaKind) => Value): PerLimit<Value> {
  const kinds = Object.values<QuotaKind>(KINDS)
  return Object.fromEntries(kinds.map((kind) => [kind.limit, make(kind)])) as PerLimit<Value>
}

export interface QuotaKind {
  limit: (typeof KINDS)[Quota]['limit']
  most: number
  unit: string
  /** Whether it begins again at midnight UTC. */
  isDaily: boolean
}

export function kindOf(quota: Quota): QuotaKind {
  return KINDS[quota]
}

const DAY_MS = 86_400_000

/** In days since 1970, UTC. */
export function dayOf(time: Date): number {
  return Math.floor(time.getTime() / DAY_MS)
}

/** When nothing of a daily quota is used again; null for other quotas, of which what has ended no longer counts. */
export function resetOf(quota: Quota, now: Date): Date | null {
  return KINDS[quota].isDaily ? new Date((dayOf(now) + 1) * DAY_MS) : null
}

/** The inboxes that count: those of an environment, those that a key created, or all of the account if both are null. */
export const quotaScope = field.object({
  environment: field.optional(field.text, null),
  keyId: field.optional(field.id('key'), null),
})
export type QuotaScope = field.ValueOf<typeof quotaScope>

export interface QuotaLimit {
  quota: Quota
  scope: QuotaScope
  limit: number
}

/** The quotas that an account has set for itself, by `quotaName`. */
export type OwnQuotas = Readonly<Record<string, QuotaLimit>>

/** The most that an account can set for itself. */
export const MAX_OWN_QUOTAS = 100

export const WHOLE_ACCOUNT: QuotaScope = { environment: null, keyId: null }

/** The scopes in which an inbox counts. */
export function quotaScopesOf(inbox: { environment: string; keyId: KeyId }): QuotaScope[] {
  const { environment, keyId } = inbox
  return [WHOLE_ACCOUNT, { environment, keyId: null }, { environment: null, keyId }]
}

/** Within an account. No environment is named like the id of a key. */
export function scopeName({ environment, keyId }: QuotaScope): string {
  return keyId ?? environment ?? '*'
}

/** Within an account. */
export function quotaName({ quota, scope }: Pick<QuotaLimit, 'quota' | 'scope'>): string {
  return `${quota} ${scopeName(scope)}`
}

export function maxOf(plan: PerLimit<number>, quota: Quota): number {
  return plan[KINDS[quota].limit]
}

/** The limit of a quota of the whole account. */
export function limitOf(plan: PerLimit<number>, own: OwnQuotas, quota: Quota): number {
  const set = own[quotaName({ quota, scope: WHOLE_ACCOUNT })]
  return Math.min(maxOf(plan, quota), set?.limit ?? Infinity)
}

/** All quotas of an account: its plan's, and within them its own. */
export function quotasOf(plan: PerLimit<number>, own: OwnQuotas): QuotaLimit[] {
  const quotas = new Map<string, QuotaLimit>()
  const ofPlan = QUOTAS.map((quota) => ({ quota, scope: WHOLE_ACCOUNT, limit: maxOf(plan, quota) }))
  for (const each of [...ofPlan, ...Object.values(own)]) {
    quotas.set(quotaName(each), { ...each, limit: Math.min(each.limit, maxOf(plan, each.quota)) })
  }
  return [...quotas.values()]
}

/** The percentages of a quota that its account is notified of. */
const NOTICE_PERCENTS = [100, 80]

/** The highest of these percentages that is used; null if none is, or if nothing is allowed. */
export function reachedPercent({ limit, used }: { limit: number; used: number }): number | null {
  if (limit === 0) return null
  return NOTICE_PERCENTS.find((percent) => used * 100 >= limit * percent) ?? null
}
