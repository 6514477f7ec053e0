import type { Schemas } from '#clients/typescript/src/options.js'
import { create, type Target } from './client.js'

export type KeyJson = Schemas['Key']
export type NewKeyJson = Schemas['KeyWithSecret']
export type AccountJson = Schemas['Account']
export type NewAccountJson = Schemas['AccountWithKey']

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
