import { create, type Target } from './client.js'
import type { UsageTotalsJson } from './usage.js'

export interface KeyJson {
  id: string
  name: string
  environment: string
  scopes: string[]
  prefix: string
  created_at: string
  last_used_at: string | null
  owner: 'service' | 'personal'
  member_id: string | null
  created_by: string | null
  expires_at: string | null
  state: 'active' | 'revoked' | 'expired'
  rate_limit: number | null
  /** Null if usage is not counted. */
  usage: UsageTotalsJson | null
}

export interface NewKeyJson extends KeyJson {
  secret: string
}

export interface AccountJson {
  id: string
  name: string | null
  plan: string
  state: 'active' | 'suspended' | 'closed'
  suspended_at: string | null
  closed_at: string | null
  erased_at: string | null
  limits: {
    requests_per_minute: number
    account_requests_per_minute: number
    retention: string
    max_message_bytes: number
    max_messages: number
  } | null
  environments: string[]
  created_at: string
}

export interface NewAccountJson extends AccountJson {
  key: NewKeyJson | null
}

export function openAccount(target: Target, body: object = {}): Promise<NewAccountJson> {
  return create(target, '/v1/accounts', { name: 'Acme', plan: 'pro', ...body })
}

export function issueKey(target: Target, body: object = {}): Promise<NewKeyJson> {
  return create(target, '/v1/keys', { name: 'CI', environment: 'staging', ...body })
}

/** The same target with another key. */
export function withKey(target: Target, key: { secret: string } | null): Target {
  if (key === null) throw new Error('the account has no key')
  return { ...target, apiKey: key.secret }
}

/** Opens an account. Resolves with the target and a key of that account with all rights on mail. */
export async function accountOn(target: Target): Promise<Target> {
  const { key } = await openAccount(target, { name: 'One', plan: 'enterprise' })
  const scopes = ['inboxes', 'read']
  return withKey(target, await issueKey(withKey(target, key), { scopes, environment: 'development' }))
}
