import { call, OtherAnswerError, type Target } from './client.js'
import type { UsageTotalsJson } from './usage.js'

export interface KeyJson {
  id: string
  name: string
  environment: string
  scopes: string[]
  prefix: string
  created_at: string
  last_used_at: string | null
  state: 'active' | 'revoked'
  rate_limit: number | null
  /** Null if it is not counted. */
  usage: UsageTotalsJson | null
}

export interface NewKeyJson extends KeyJson {
  secret: string
}

export interface AccountJson {
  id: string
  name: string
  plan: string
  limits: {
    requests_per_minute: number
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

/** Opens an account; fails on any answer but 201. */
export async function openAccount(target: Target, body: object = {}): Promise<NewAccountJson> {
  const wanted = { name: 'Acme', plan: 'pro', ...body }
  return made(await call<NewAccountJson>(target, 'POST', '/v1/accounts', { body: wanted }))
}

/** Issues a key; fails on any answer but 201. */
export async function issueKey(target: Target, body: object = {}): Promise<NewKeyJson> {
  const wanted = { name: 'CI', environment: 'staging', ...body }
  return made(await call<NewKeyJson>(target, 'POST', '/v1/keys', { body: wanted }))
}

/** The target with another key. */
export function as(target: Target, key: { secret: string } | null): Target {
  if (key === null) throw new Error('there is no key')
  return { ...target, apiKey: key.secret }
}

/** Opens an account; the target with a key of it that may do all there is to do with mail. */
export async function accountOn(target: Target): Promise<Target> {
  const { key } = await openAccount(target, { name: 'One', plan: 'enterprise' })
  const scopes = ['inboxes', 'read']
  return as(target, await issueKey(as(target, key), { scopes, environment: 'development' }))
}

function made<Body>({ status, body }: { status: number; body: Body }): Body {
  if (status !== 201) throw new OtherAnswerError('not made', status, body)
  return body
}
