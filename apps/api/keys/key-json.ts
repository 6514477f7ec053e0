import type { Static } from 'typebox'
import type { ApiKey } from '#libs/domain/account/account.js'
import type { UsageTotals } from '#libs/ports/usage/usage-store.js'
import type { Key, KeyWithSecret } from './key-schemas.js'

/** What of a key's use is known elsewhere than in the key. */
export interface KeyUses {
  lastUsedAt: Date | null
  /** Null if it can't be told just now. */
  usage: UsageTotals | null
}

/** A key as the contract has it. */
export function keyJson(key: ApiKey, { lastUsedAt, usage }: KeyUses): Static<typeof Key> {
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
    usage,
  }
}

/** A key with a secret that is shown this once. */
export interface NewKey {
  key: ApiKey
  secret: string
  uses: KeyUses
}

export function newKeyJson({ key, secret, uses }: NewKey): Static<typeof KeyWithSecret> {
  return { ...keyJson(key, uses), secret }
}
