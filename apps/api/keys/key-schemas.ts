import Type from 'typebox'
import { named, object } from '#libs/domain/event-sourcing/declare.js'
import { SCOPES } from '#libs/domain/account/access.js'
import { memberIdOf, type ApiKey } from '#libs/domain/account/account.js'
import { keyState, type KeyState } from '#libs/domain/account/key-expiry.js'
import type { UsageTotals } from '#libs/ports/usage/usage-store.js'
import { IdOf, KeyOrMember, OneOf, orNull, OrNull, resource, SomeOf, time } from '#libs/runtime/resource.js'
import { totals } from '../usage/usage-schemas.js'

const usage = object(totals, { $id: 'KeyUsage', description: 'The usage of a key.' })

const key = {
  id: IdOf('key', 'The id of the key. It does not change when the secret is rotated.'),
  name: Type.String({ description: 'A name to show to people.' }),
  environment: Type.String({ description: 'The environment that the key belongs to.' }),
  scopes: SomeOf(SCOPES, 'The scopes of the key.'),
  prefix: Type.String({ description: 'The beginning of its secret.' }),
  issuedAt: named('created_at', time('When it was issued.')),
  owner: OneOf(
    ['service', 'personal'],
    '`service`: it belongs to the account. `personal`: it belongs to the member that issued it, has at most the access of that member, and ends with the membership.',
  ),
  memberId: OrNull(IdOf('mem', ''), 'The member that a personal key belongs to; null for a service key.'),
  createdBy: OrNull(KeyOrMember(''), 'The key or the member that issued it; null for the first key of all.'),
  expiresAt: orNull(time(''), 'When it expires; null if it never does.'),
  lastUsedAt: orNull(time(''), 'The approximate time of the last request with it.'),
  state: OneOf(['active', 'revoked', 'expired'] satisfies KeyState[], 'Whether it is valid.'),
  rateLimit: OrNull(
    Type.Integer({ minimum: 1 }),
    "The maximum requests per minute; null if the account's applies.",
  ),
  usage: orNull(
    usage,
    'Its usage since it was issued, a few seconds behind; null if it cannot be read at the moment.',
  ),
}

export const UNUSED = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }

const example = {
  id: 'key_01jd6aycj4e7p8s9v1w3x5z7b2',
  name: 'CI',
  environment: 'staging',
  scopes: ['inboxes'],
  prefix: 'mf_staging_4fT9',
  created_at: '2026-11-20T08:05:00.000Z',
  owner: 'service',
  member_id: null,
  created_by: 'key_01jd6a0v7w8x9y0z1a2b3c4d5e',
  expires_at: '2027-11-20T08:05:00.000Z',
  last_used_at: '2026-11-21T09:30:00.000Z',
  state: 'active',
  rate_limit: null,
  usage: { requests: 210, refusals: 3, inboxes: 12, mails: 48, bytes: 251904 },
}

export const { schema: Key, json: keyJson } = resource(
  'Key',
  {
    description:
      'An API key, which authenticates requests. Its secret is stored as a digest and shown only once.',
    examples: [example],
  },
  key,
  (key: ApiKey, uses: KeyUses, now: Date) => {
    return { ...key, ...uses, memberId: memberIdOf(key), state: keyState(key, now) }
  },
)

/** A key in the answers that issue or rotate it. */
export const { schema: KeyWithSecret, json: newKeyJson } = resource(
  'KeyWithSecret',
  {
    description: 'A key with its new secret.',
    examples: [
      {
        ...example,
        last_used_at: null,
        usage: UNUSED,
        secret: 'mf_staging_4fT9xQ2mZr7LkV0cNp8WsYb1HdJg5EaU_2tPq9B',
      },
    ],
  },
  { ...key, secret: Type.String({ description: 'The bearer token. Only in this answer.' }) },
  ({ key, secret, uses }: NewKey) => {
    return { ...key, ...uses, memberId: memberIdOf(key), state: 'active' as const, secret }
  },
)

export interface KeyUses {
  lastUsedAt: Date | null
  /** Null if it can't be read at the moment. */
  usage: UsageTotals | null
}

/** A key with its secret, which is shown only once. */
export interface NewKey {
  key: ApiKey
  secret: string
  uses: KeyUses
}
