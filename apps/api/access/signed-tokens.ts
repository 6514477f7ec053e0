import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { DerivedKeys } from '#libs/ports/key-vault/master-key.js'

/*
 * Short-lived tokens that every instance can verify without a lookup, because a key derived from the master key signs
 * them. A token reveals its payload to whoever has it. The current master key signs: when it is replaced, outstanding
 * tokens become invalid, and their holders must get new ones.
 */

/** Longer texts are not tokens. The bound keeps the work for hostile input small. */
const MAX_TOKEN_CHARACTERS = 1_000

/** The payload as JSON and its HMAC-SHA256 (RFC 2104), both in base64url (RFC 4648, section 5). */
const FORM = /^([\w-]+)\.([\w-]{43})$/

/** Signs and verifies the tokens of one purpose. A token of another purpose is never valid. */
export class SignedTokens<Schema extends TSchema> {
  private readonly key
  private readonly payloads

  constructor(keys: DerivedKeys, purpose: string, schema: Schema) {
    this.key = createSecretKey(keys.deriveKey(`signed token: ${purpose}`))
    this.payloads = Compile(schema)
  }

  /** Throws a RangeError if the payload is too large. */
  sign(payload: Static<Schema>, expiresAt: Date): string {
    const body = Buffer.from(JSON.stringify([expiresAt.getTime(), payload])).toString('base64url')
    const token = `${body}.${this.signatureOf(body)}`
    if (token.length > MAX_TOKEN_CHARACTERS) throw new RangeError('the payload of the token is too large')
    return token
  }

  /** The payload of a token; null if this purpose did not sign it, or it has expired. */
  verify(token: string, now: Date): Static<Schema> | null {
    if (token.length > MAX_TOKEN_CHARACTERS) return null
    const [, body = '', signature = ''] = FORM.exec(token) ?? []
    if (signature === '') return null
    if (!timingSafeEqual(Buffer.from(signature), Buffer.from(this.signatureOf(body)))) return null
    const [expiresAtMs, payload] = JSON.parse(Buffer.from(body, 'base64url').toString()) as [number, unknown]
    // An instance of another version may have signed another form.
    return now.getTime() < expiresAtMs && this.payloads.Check(payload) ? payload : null
  }

  private signatureOf(body: string): string {
    return createHmac('sha256', this.key).update(body).digest('base64url')
  }
}
