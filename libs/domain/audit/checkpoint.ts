import { createPrivateKey, createPublicKey, hash, sign, type KeyObject } from 'node:crypto'

/*
 * Checkpoints of audit logs (C2SP tlog-checkpoint): signed notes with the size and the root of a log. Each key signs the
 * note itself, and a cosignature with the time (C2SP tlog-cosignature).
 */

/** Types of signatures in notes. A further one, such as that of ML-DSA-44 (0x06), is another line of the note. */
const ED25519 = 0x01
const COSIGNATURE = 0x04

/** A private key of Ed25519 in PKCS #8 (RFC 8410, section 7) begins with these bytes. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

export interface SigningKey {
  privateKey: KeyObject
  /** 32 bytes (RFC 8032). */
  publicKey: Buffer
}

/** `seed` is the private key of RFC 8032, 32 bytes. */
export function signingKey(seed: Uint8Array): SigningKey {
  const key = Buffer.concat([PKCS8_PREFIX, seed])
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { privateKey, publicKey: Buffer.from(x, 'base64url') }
}

/** A log's size and root, in base64, as a note that each key has signed under the name of the origin. */
export function signCheckpoint(
  origin: string,
  { size, root }: { size: number; root: string },
  keys: readonly SigningKey[],
  now: Date,
): string {
  const body = `${origin}\n${size}\n${root}\n`
  const seconds = Math.floor(now.getTime() / 1000)
  const lines = keys.flatMap(({ privateKey, publicKey }) => {
    const timestamp = Buffer.alloc(8)
    timestamp.writeBigUInt64BE(BigInt(seconds))
    const cosigned = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${body}`), privateKey)
    return [
      Buffer.concat([keyId(origin, ED25519, publicKey), sign(null, Buffer.from(body), privateKey)]),
      Buffer.concat([keyId(origin, COSIGNATURE, publicKey), timestamp, cosigned]),
    ]
  })
  return `${body}\n${lines.map((line) => `\u2014 ${origin} ${line.toString('base64')}\n`).join('')}`
}

/** The public key as a verifier key of signed notes: `<name>+<hash>+<key>`. */
export function verifierKey(origin: string, { publicKey }: Pick<SigningKey, 'publicKey'>): string {
  const key = Buffer.concat([Buffer.from([ED25519]), publicKey]).toString('base64')
  return `${origin}+${keyId(origin, ED25519, publicKey).toString('hex')}+${key}`
}

function keyId(name: string, type: number, publicKey: Uint8Array): Buffer {
  const hashed = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), publicKey])
  return Buffer.from(hash('sha256', hashed, 'buffer').subarray(0, 4))
}
