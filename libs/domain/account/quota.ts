import type { KeyId } from '#libs/domain/ids/typeid.js'

/** Each quota: the limit of plans that sets it, the most that a plan may allow, and what counts. */
const KINDS = {
  inboxes: { limit: 'maxInboxes', most: 10_000_000, unit: 'active inboxes' },
  'stored-bytes': {
    limit: 'maxStoredBytes',
    most: 2 ** 40,
    unit: "bytes in the sources of active inboxes' mail",
  },
  webhooks: { limit: 'maxWebhooks', most: 100_000, unit: 'webhooks of environments' },
  domains: { limit: 'maxDomains', most: 1_000, unit: 'domains' },
  members: { limit: 'maxMembers', most: 1_000, unit: 'members and invitations' },
} as const

export type Quota = keyof typeof KINDS
export const QUOTAS = Object.keys(KINDS) as [Quota, ...Quota[]]

/** Those of inboxes and their mail. Only these can be set for an environment or a key. */
export const MAIL_QUOTAS = ['inboxes', 'stored-bytes'] as const satisfies Quota[]
export type MailQuota = (typeof MAIL_QUOTAS)[number]
export type CountedQuota = Exclude<Quota, MailQuota>

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
}

export function kindOf(quota: Quota): QuotaKind {
  return KINDS[quota]
}

/** The inboxes that count: those of an environment, those that a key created, or all of the account if both are null. */
export interface QuotaScope {
  environment: string | null
  keyId: KeyId | null
}

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
