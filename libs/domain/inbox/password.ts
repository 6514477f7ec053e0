/** Random bytes that a password is made of. */
export const PASSWORD_BYTES = 16

const DIGITS = 26

/** The password of a protected inbox: 128 random bits as 26 digits of base32hex (RFC 4648, section 7), lower case. */
export function makePassword(random: Uint8Array): string {
  if (random.length !== PASSWORD_BYTES) throw new RangeError(`a password takes ${PASSWORD_BYTES} bytes`)
  let bits = 0n
  for (const byte of random) bits = (bits << 8n) | BigInt(byte)
  return bits.toString(32).padStart(DIGITS, '0')
}
