import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto'

/** 256 bits that open what was sealed with them. */
export type SecretKey = Buffer & { readonly __secret: true }

/*
 * Ciphers are given a KeyObject made on the spot: Node takes three times as long to work out what a plain buffer
 * is as to seal a mail with it.
 */

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES

/** What sealing adds to a plaintext. */
export const SEAL_OVERHEAD_BYTES = HEAD_BYTES + TAG_BYTES

const SECRET_KEY_BYTES = 32

export function makeSecretKey(): SecretKey {
  return secretKey(randomBytes(SECRET_KEY_BYTES))
}

export function secretKey(bytes: Buffer): SecretKey {
  if (bytes.length !== SECRET_KEY_BYTES) throw new RangeError(`a key has ${SECRET_KEY_BYTES} bytes`)
  return bytes as SecretKey
}

/**
 * AES-256-GCM (NIST SP 800-38D) with a random 96 bit nonce: version, nonce, ciphertext, tag. `context` says what
 * is sealed for what; it is authenticated, not stored, and opening takes the same one. A key seals fewer than
 * 2^32 texts (section 8.3), which no inbox reaches.
 */
export function seal(key: SecretKey, context: string, plaintext: Uint8Array): Buffer {
  const nonce = nextNonce()
  const cipher = createCipheriv('aes-256-gcm', createSecretKey(key), nonce)
  cipher.setAAD(Buffer.from(context))
  const sealed = Buffer.allocUnsafe(SEAL_OVERHEAD_BYTES + plaintext.length)
  sealed[0] = VERSION
  nonce.copy(sealed, 1)
  cipher.update(plaintext).copy(sealed, HEAD_BYTES)
  cipher.final()
  cipher.getAuthTag().copy(sealed, sealed.length - TAG_BYTES)
  return sealed
}

/** Throws SealBrokenError if the bytes were not sealed with this key in this context. */
export function unseal(key: SecretKey, context: string, sealed: Uint8Array): Buffer {
  if (sealed.length < SEAL_OVERHEAD_BYTES || sealed[0] !== VERSION) throw new SealBrokenError(context)
  const decipher = createDecipheriv('aes-256-gcm', createSecretKey(key), sealed.subarray(1, HEAD_BYTES))
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
  const plaintext = decipher.update(sealed.subarray(HEAD_BYTES, sealed.length - TAG_BYTES))
  try {
    decipher.final()
  } catch (cause) {
    throw new SealBrokenError(context, { cause })
  }
  return plaintext
}

export class SealBrokenError extends Error {
  override readonly name = 'SealBrokenError'

  constructor(context: string, options?: ErrorOptions) {
    super(`sealed bytes do not open: ${context}`, options)
  }
}

let nonces = Buffer.alloc(0)

/** Drawn from the system in blocks, since one call for each costs more than the sealing. */
function nextNonce(): Buffer {
  if (nonces.length < NONCE_BYTES) nonces = randomBytes(NONCE_BYTES * 512)
  const nonce = nonces.subarray(0, NONCE_BYTES)
  nonces = nonces.subarray(NONCE_BYTES)
  return nonce
}
