import type { FastifyRequest } from 'fastify'
import { invalid } from '../http/problems.js'

const MOST_CHARACTERS = 255
/** A String of RFC 8941, section 3.3.3: quoted, with quotes and backslashes escaped. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/
/** The same without quotes, as most clients send it. */
const BARE = /^[\x21\x23-\x7e][\x21-\x7e]*$/

/**
 * The text of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07), the same quoted and bare; null where a
 * POST has none. Throws a 400 where it is not 1 to 255 characters of visible ASCII.
 */
export function idempotencyKeyOf({ method, headers }: FastifyRequest): string | null {
  const given = headers['idempotency-key']
  if (method !== 'POST' || given === undefined) return null
  const text = String(given)
  const [, quoted] = QUOTED.exec(text) ?? []
  const key = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? (BARE.test(text) ? text : '')
  if (key.length >= 1 && key.length <= MOST_CHARACTERS) return key
  throw invalid({
    detail: `Idempotency-Key must be 1 to ${MOST_CHARACTERS} characters of visible ASCII, quoted or bare`,
    header: 'Idempotency-Key',
  })
}
