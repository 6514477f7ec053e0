import { crc32 } from 'node:zlib'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const FORM = /^(mf_[a-z][a-z0-9-]{0,31}_[0-9A-Za-z]{32}_)([0-9A-Za-z]{6})$/

/** Random base62 digits that a secret is made of. */
export const SECRET_DIGITS = 32

export const ENVIRONMENT = /^[a-z][a-z0-9-]{0,31}$/

/** Bytes from here on would favour the first digits. */
const EVEN = 256 - (256 % ALPHABET.length)
const BYTES_AT_ONCE = 2 * SECRET_DIGITS

/**
 * A secret of random bytes, the same for the same ones: each digit is as likely as any other. Its form is
 * `mf_<environment>_<32 base62>_<6 base62: CRC-32 (ISO 3309) of all before it>`.
 */
export function drawSecret(environment: string, bytes: (count: number) => Uint8Array): string {
  const digits: string[] = []
  while (digits.length < SECRET_DIGITS) {
    const even = bytes(BYTES_AT_ONCE).filter((byte) => byte < EVEN)
    const drawn = Array.from(even, (byte) => ALPHABET.charAt(byte % ALPHABET.length))
    digits.push(...drawn.slice(0, SECRET_DIGITS - digits.length))
  }
  const body = `mf_${environment}_${digits.join('')}_`
  return body + checksum(body)
}

/** Whether a text has a key's form but not its checksum: a copying mistake, found without a look-up. */
export function isMistyped(secret: string): boolean {
  const [, body = '', sum] = FORM.exec(secret) ?? []
  return sum !== undefined && checksum(body) !== sum
}

/** As much of a secret as may be shown again. */
export function prefixOf(secret: string): string {
  return secret.slice(0, Math.min(Math.floor(secret.length / 3), 'mf__'.length + 32 + 4))
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place += 1) {
    digits = ALPHABET.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** For which the secret of a key, or of a webhook, may go on working once another has taken its place. */
export const LONGEST_GRACE_MS = 7 * 86_400_000
export const GRACE_UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

/** How long a former secret goes on working: `0`, or a whole number and one of s m h d w, in milliseconds; else null. */
export function parseGrace(text: string): number | null {
  if (text === '0') return 0
  const [, count, unit] = /^(\d+)([smhdw])$/.exec(text) ?? []
  return unit === undefined ? null : Number(count) * GRACE_UNIT_MS[unit as keyof typeof GRACE_UNIT_MS]
}

export const SCOPES = ['inboxes', 'read', 'audit', 'admin', 'operator'] as const

/** What a key may do: `read` is the GETs of `inboxes`, `operator` reaches every account. */
export type Scope = (typeof SCOPES)[number]

/** Whether a holder of some scopes may do what one of the wanted scopes allows. */
export function allows(held: readonly Scope[], wanted: readonly Scope[]): boolean {
  return wanted.some((scope) => held.includes(scope))
}
