import type { Static } from 'typebox'
import type { ApiKey } from '#libs/account/account.js'
import type { Key, KeyWithSecret } from './key-schemas.js'

/** A key as the contract has it. `usage` is null until usage is counted. */
export function keyJson(key: ApiKey, lastUsedAt: Date | null): Static<typeof Key> {
  return {
    id: key.id,
    name: key.name,
    environment: key.environment,
    scopes: [...key.scopes],
    prefix: key.prefix,
    created_at: key.issuedAt.toISOString(),
    last_used_at: lastUsedAt?.toISOString() ?? null,
    state: key.revokedAt === null ? 'active' : 'revoked',
    rate_limit: key.rateLimit,
    usage: null,
  }
}

/** A key with a secret that is shown this once. */
export interface NewKey {
  key: ApiKey
  secret: string
  lastUsedAt: Date | null
}

export function newKeyJson({ key, secret, lastUsedAt }: NewKey): Static<typeof KeyWithSecret> {
  return { ...keyJson(key, lastUsedAt), secret }
}
