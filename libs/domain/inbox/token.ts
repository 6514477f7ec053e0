import { isId, type Id, type InboxId, type KeyId } from '#libs/domain/ids/typeid.js'

/*
 * Inbox tokens: secrets that can access one inbox and nothing else.
 */

export type TokenId = Id<'tok'>

export const TOKEN_ACCESS = ['read', 'owner'] as const

/** `read` reads the inbox and its mail; `owner` may delete the inbox too. */
export type TokenAccess = (typeof TOKEN_ACCESS)[number]

export interface InboxToken {
  id: TokenId
  /** Hex SHA-256 of the secret, which is not stored. */
  hash: string
  access: TokenAccess
  /** The key that issued it. */
  keyId: KeyId
  issuedAt: Date
  /** It is invalid from then on. The end of its inbox may come first. */
  expiresAt: Date
  revokedAt: Date | null
}

/** Valid tokens of an inbox, at most. */
export const MAX_TOKENS = 100

/** Random bytes that a secret is made from. */
export const TOKEN_BYTES = 24

const FORM = /^mft_([0-7][0-9a-hjkmnp-tv-z]{25})_[\w-]{32}$/

/** Makes a secret: `mft_<inbox id without its prefix>_<192 random bits in base64url>`. */
export function makeTokenSecret(inboxId: InboxId, random: Uint8Array): string {
  if (random.length !== TOKEN_BYTES) throw new RangeError(`a token takes ${TOKEN_BYTES} bytes`)
  return `mft_${inboxId.slice('inb_'.length)}_${Buffer.from(random).toString('base64url')}`
}

/** The inbox that a secret is for; null if the text does not have the form of a token. */
export function inboxIdOfToken(secret: string): InboxId | null {
  const [, suffix = ''] = FORM.exec(secret) ?? []
  const inboxId = `inb_${suffix}`
  return isId('inb', inboxId) ? inboxId : null
}

/** Whether a token is valid at a time, if its inbox has not ended by then. */
export function isLive({ revokedAt, expiresAt }: InboxToken, now: Date): boolean {
  return revokedAt === null && now < expiresAt
}
