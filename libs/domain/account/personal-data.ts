import Type from 'typebox'
import * as field from '#libs/domain/event-sourcing/declare.js'

/*
 * Personal data in events and views: sealed with the key of the account or member that it belongs to, so that forgetting
 * the key erases it everywhere.
 */

const sealed = field.object({
  sealed: field.sealedText,
  /**
   * Of an email address, to find it by: an HMAC with a key that is derived from a master key, so that the address can't
   * be guessed without it. It is left after the erasure. Null for other data.
   */
  hash: field.optional(field.sha256, null),
})

/** Plain text in events from before it was sealed. */
export type PersonalText = field.ValueOf<typeof sealed> | string

export const personalText = field.codec(
  Type.Union([sealed.schema, Type.String()]),
  (stored: PersonalText) => (typeof stored === 'string' ? stored : sealed.encode(stored)),
  (data): PersonalText => (typeof data === 'string' ? data : sealed.decode(data)),
)

/** What a stored email address is found by. */
export function emailLookup(email: PersonalText): string {
  return typeof email === 'string' ? email.toLowerCase() : (email.hash ?? '')
}
