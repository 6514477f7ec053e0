/** An address of Mayfly: lower case, without a tag. */
export type Address = string & { readonly __address: true }

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const LOCAL_PART_LENGTH = 20

/** Random bytes that a new address is made of: one for each character, five bits of it used. */
export const ADDRESS_BYTES = LOCAL_PART_LENGTH

/** A generated address: 20 characters of Crockford's base32, 100 random bits. */
export function makeAddress(random: Uint8Array, domain: string): Address {
  if (random.length !== ADDRESS_BYTES) throw new RangeError(`an address takes ${ADDRESS_BYTES} bytes`)
  let localPart = ''
  for (const byte of random) localPart += ALPHABET.charAt(byte & 31)
  return `${localPart}@${domain.toLowerCase()}` as Address
}

/**
 * The address of Mayfly that a recipient reaches: case is ignored and a tag (`local+tag@`, RFC 5233) dropped.
 * Null if no generated address can be meant.
 */
export function addressReached(recipient: string, domain: string): Address | null {
  const at = recipient.lastIndexOf('@')
  if (at < 0 || recipient.slice(at + 1).toLowerCase() !== domain.toLowerCase()) return null
  const [localPart = ''] = recipient.slice(0, at).toLowerCase().split('+', 1)
  if (localPart.length !== LOCAL_PART_LENGTH) return null
  for (const character of localPart) if (!ALPHABET.includes(character)) return null
  return `${localPart}@${domain.toLowerCase()}` as Address
}
