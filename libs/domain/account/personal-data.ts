import Type from 'typebox'
import * as field from '#libs/domain/event-sourcing/declare.js'

/*
 * Personal data in events and views. Forgetting the key of the account or member that it belongs to erases it everywhere.
 */

/** Sealed with that key. */
const sealed = field.object({
  sealed: field.sealedText,
  /** What it is found by: an HMAC with a master key, so that the text can't be guessed from it. Null if it is never searched. */
  hash: field.optional(field.sha256, null),
})

/** Plain text in events from before it was sealed. */
export type PersonalText = field.ValueOf<typeof sealed> | string

export const personalText = field.codec(
  Type.Union([sealed.schema, Type.String()]),
  (stored: PersonalText) => (typeof stored === 'string' ? stored : sealed.encode(stored)),
  (data): PersonalText => (typeof data === 'string' ? data : sealed.decode(data)),
)

/** What an email address is found by. */
export function nameOfEmail(email: PersonalText): string {
  return typeof email === 'string' ? email.toLowerCase() : (email.hash ?? '')
}
