import Type, { type Static } from 'typebox'
import { SCOPES, type Scope } from '#libs/domain/account/access.js'
import type { ApiKey } from '#libs/domain/account/account.js'
import type { UsageTotals } from '#libs/ports/usage/usage-store.js'
import { IdOf, OrNull, Time } from '../openapi/describe.js'
import { totals } from '../usage/usage-schemas.js'

const Usage = Type.Object(totals, { $id: 'KeyUsage', description: 'What a key was used for.' })

const key = {
  id: IdOf('key', 'Stays with it, whatever its secret.'),
  name: Type.String({ description: 'For people.' }),
  environment: Type.String({ description: 'The environment that the key belongs to.' }),
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: SCOPES }), {
    description: 'What it may do.',
  }),
  prefix: Type.String({ description: 'How its secret begins.' }),
  created_at: Time('When it was issued.'),
  last_used_at: OrNull(Time(''), 'About when a request was made with it last.'),
  state: Type.Union([Type.Literal('active'), Type.Literal('revoked')], { description: 'Whether it works.' }),
  rate_limit: OrNull(Type.Integer({ minimum: 1 }), "Requests per minute; null for the account's."),
  usage: OrNull(Usage, 'Since it was issued, a few seconds behind; null if it is not known at the moment.'),
}

/** The use of a key that has just been issued. */
export const UNUSED = { requests: 0, refusals: 0, inboxes: 0, mails: 0, bytes: 0 }

const example = {
  id: 'key_01jd6aycj4e7p8s9v1w3x5z7b2',
  name: 'CI',
  environment: 'staging',
  scopes: ['inboxes'],
  prefix: 'mf_staging_4fT9',
  created_at: '2026-11-20T08:05:00.000Z',
  last_used_at: '2026-11-21T09:30:00.000Z',
  state: 'active',
  rate_limit: null,
  usage: { requests: 210, refusals: 3, inboxes: 12, mails: 48, bytes: 251904 },
}

export const Key = Type.Object(key, {
  $id: 'Key',
  description: 'What requests are made with. Its secret is kept as a digest and shown once.',
  examples: [example],
})

/** A key in the answer that its secret was made for. */
export const KeyWithSecret = Type.Object(
  { ...key, secret: Type.String({ description: 'The bearer token, this once.' }) },
  {
    $id: 'KeyWithSecret',
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
)

/** How a key has been used, which is stored apart from the key. */
export interface KeyUses {
  lastUsedAt: Date | null
  /** Null if it is not known at the moment. */
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
