import type { Address } from './events.js'

/*
 * The values of a new inbox: its lifespan, and its address and password, both made from random bytes.
 */

/** Labels of an inbox, at most. */
export const MAX_LABELS = 16
/** Bytes of all names and values in UTF-8, of the labels that a request sends. Inboxes made earlier may have more. */
export const MAX_LABEL_BYTES = 1024

/** How long an inbox lives, in the unit that the client chose. */
export interface Lifespan {
  /** A whole number, without leading zeros, and one of m h d w: `30m`, `24h`, `7d`, `2w`. */
  text: string
  ms: number
}

/** The units that a duration may have. */
export const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const
const MIN_LIFESPAN_MS = UNIT_MS.m
const DEFAULT: Lifespan = { text: '24h', ms: 24 * UNIT_MS.h }

/**
 * Parses a whole number and one of the units. Null if the text is malformed. For a very long number of digits, ms is
 * Infinity.
 */
export function parseDuration(text: string, unitMs: Readonly<Record<string, number>>): Lifespan | null {
  const [, count = '', unit = ''] = /^(\d+)([a-z])$/.exec(text) ?? []
  const ms = unitMs[unit]
  return ms === undefined ? null : { text: `${count.replace(/^0+/, '')}${unit}`, ms: Number(count) * ms }
}

/** Parses a lifespan. Null if the text is malformed or the time is under a minute. */
export function parseLifespan(text: string): Lifespan | null {
  const lifespan = parseDuration(text, UNIT_MS)
  return lifespan === null || lifespan.ms < MIN_LIFESPAN_MS ? null : lifespan
}

/** A day, or the retention if that is shorter. */
export function defaultLifespan(retention: Lifespan): Lifespan {
  return retention.ms < DEFAULT.ms ? retention : DEFAULT
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const LOCAL_PART_LENGTH = 20

/** Random bytes that an address is made from: five bits of each byte are one character. */
export const ADDRESS_BYTES = LOCAL_PART_LENGTH

/** Makes an address: 20 characters of Crockford's base32, which are 100 random bits. */
export function makeAddress(random: Uint8Array, domain: string): Address {
  if (random.length !== ADDRESS_BYTES) throw new RangeError(`an address takes ${ADDRESS_BYTES} bytes`)
  return `${base32(random)}@${domain.toLowerCase()}` as Address
}

/** Five bits of each byte as one character of Crockford's base32. */
export function base32(random: Uint8Array): string {
  let text = ''
  for (const byte of random) text += ALPHABET.charAt(byte & 31)
  return text
}

/**
 * The generated address that a recipient means: case is ignored and a tag (`local+tag@`, RFC 5233) removed. Null if it
 * can't be a generated address.
 */
export function addressOfRecipient(recipient: string, domain: string): Address | null {
  const at = recipient.lastIndexOf('@')
  if (at < 0 || recipient.slice(at + 1).toLowerCase() !== domain.toLowerCase()) return null
  const [localPart = ''] = recipient.slice(0, at).toLowerCase().split('+', 1)
  if (localPart.length !== LOCAL_PART_LENGTH) return null
  for (const character of localPart) if (!ALPHABET.includes(character)) return null
  return `${localPart}@${domain.toLowerCase()}` as Address
}

/** Random bytes that a password is made from. */
export const PASSWORD_BYTES = 16

const DIGITS = 26

/** The password of a protected inbox: 128 random bits as 26 digits of base32hex (RFC 4648, section 7), lower case. */
export function makePassword(random: Uint8Array): string {
  if (random.length !== PASSWORD_BYTES) throw new RangeError(`a password takes ${PASSWORD_BYTES} bytes`)
  let bits = 0n
  for (const byte of random) bits = (bits << 8n) | BigInt(byte)
  return bits.toString(32).padStart(DIGITS, '0')
}
