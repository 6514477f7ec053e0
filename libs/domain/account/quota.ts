import type { KeyId } from '#libs/domain/ids/typeid.js'
import type { Plan } from './access.js'

/** What quotas limit: active inboxes, and the bytes of the mail in them. */
export const QUOTAS = ['inboxes', 'stored-bytes'] as const
export type Quota = (typeof QUOTAS)[number]

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

const WHOLE_ACCOUNT: QuotaScope = { environment: null, keyId: null }

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

export function maxOf({ maxInboxes, maxStoredBytes }: Plan, quota: Quota): number {
  return { inboxes: maxInboxes, 'stored-bytes': maxStoredBytes }[quota]
}

/** All quotas of an account: its plan's, and within them its own. */
export function quotasOf(plan: Plan, own: OwnQuotas): QuotaLimit[] {
  const quotas = new Map<string, QuotaLimit>()
  const ofPlan = QUOTAS.map((quota) => ({ quota, scope: WHOLE_ACCOUNT, limit: maxOf(plan, quota) }))
  for (const each of [...ofPlan, ...Object.values(own)]) {
    quotas.set(quotaName(each), { ...each, limit: Math.min(each.limit, maxOf(plan, each.quota)) })
  }
  return [...quotas.values()]
}
