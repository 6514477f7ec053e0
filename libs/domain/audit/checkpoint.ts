import { createPrivateKey, createPublicKey, hash, sign, verify, type KeyObject } from 'node:crypto'

/*
 * Checkpoints of audit logs (C2SP tlog-checkpoint): signed notes with the size and the root of a log. Each key signs the
 * note itself, and a cosignature with the time (C2SP tlog-cosignature).
 */

/** Types of signatures in notes. A further one, such as that of ML-DSA-44 (0x06), is another line of the note. */
const ED25519 = 0x01
const COSIGNATURE = 0x04

/** The last second of a `Date`. */
const MAX_SECONDS = 8_640_000_000_000

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

/** What is signed of a checkpoint (C2SP tlog-checkpoint). */
export function checkpointBody(origin: string, { size, root }: { size: number; root: string }): string {
  return `${origin}\n${size}\n${root}\n`
}

/** A log's size and root, in base64, as a note that each key has signed under the name of the origin. */
export function signCheckpoint(
  origin: string,
  checkpoint: { size: number; root: string },
  keys: readonly SigningKey[],
  now: Date,
): string {
  const body = checkpointBody(origin, checkpoint)
  // Rounded up, so that nothing in the log is later than the time that is signed.
  const seconds = Math.ceil(now.getTime() / 1000)
  const lines = keys.flatMap(({ privateKey, publicKey }) => {
    const timestamp = Buffer.alloc(8)
    timestamp.writeBigUInt64BE(BigInt(seconds))
    return [
      Buffer.concat([keyId(origin, ED25519, publicKey), sign(null, Buffer.from(body), privateKey)]),
      Buffer.concat([
        keyId(origin, COSIGNATURE, publicKey),
        timestamp,
        sign(null, cosigned(seconds, body), privateKey),
      ]),
    ]
  })
  return `${body}\n${lines.map((line) => `\u2014 ${origin} ${line.toString('base64')}\n`).join('')}`
}

export interface OpenedCheckpoint {
  size: number
  /** In base64. */
  root: string
  /** When the log's own cosignature says that it was the latest. */
  cosignedAt: Date
}

/** As `openCheckpoint`, with the first of several verifier keys that has signed it. */
export function openWithAny(note: string, [first = '', ...others]: readonly string[]): OpenedCheckpoint {
  try {
    return openCheckpoint(note, first)
  } catch (error) {
    if (others.length === 0) throw error
    return openWithAny(note, others)
  }
}

/**
 * Verifies the signature and the cosignature of a verifier key. Throws CheckpointError for what is not a checkpoint of that
 * log, and if a signature is missing or wrong.
 */
export function openCheckpoint(note: string, verifier: string): OpenedCheckpoint {
  const { origin, publicKey } = readVerifierKey(verifier)
  const end = note.lastIndexOf('\n\n') + 1
  const body = note.slice(0, end)
  const [name, size = '', root = '', rest] = body.split('\n')
  if (end === 0 || rest === undefined) throw new CheckpointError('it is not a checkpoint')
  if (name !== origin) throw new CheckpointError(`it is of the log ${name ?? ''}`)
  if (!/^(0|[1-9]\d{0,14})$/.test(size)) throw new CheckpointError('its size is not a number')
  if (Buffer.from(root, 'base64').length !== 32 || !/^[\w+/]{43}=$/.test(root)) {
    throw new CheckpointError('its root is not a hash')
  }
  const key = keyOf(publicKey)
  const lines = note.slice(end + 1)
  const [signature] = signaturesIn(lines, origin, ED25519, publicKey)
  if (signature === undefined) throw new CheckpointError('it has no signature of that key')
  if (!verify(null, Buffer.from(body), key, signature)) throw new CheckpointError('its signature is wrong')
  const [cosignature] = signaturesIn(lines, origin, COSIGNATURE, publicKey)
  if (cosignature?.length !== 72) throw new CheckpointError('it has no cosignature of that key')
  const seconds = Number(cosignature.readBigUInt64BE())
  if (seconds > MAX_SECONDS || !verify(null, cosigned(seconds, body), key, cosignature.subarray(8))) {
    throw new CheckpointError('its cosignature is wrong')
  }
  return { size: Number(size), root, cosignedAt: new Date(seconds * 1000) }
}

/** Why a checkpoint can't be trusted. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError'
}

/** The signatures of a key in the lines of a note, without the id of the key. */
function signaturesIn(lines: string, name: string, type: number, publicKey: Uint8Array): Buffer[] {
  const id = keyId(name, type, publicKey)
  return lines.split('\n').flatMap((line) => {
    const [, signer, text = ''] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? []
    const bytes = Buffer.from(signer === name ? text : '', 'base64')
    return bytes.subarray(0, id.length).equals(id) ? [bytes.subarray(id.length)] : []
  })
}

/**
 * The first line of a note with which a witness has cosigned `body`, the checkpoint without its signatures; null if none is
 * genuine. Throws CheckpointError for what is not a verifier key of cosignatures.
 */
export function cosignatureOf(body: string, lines: string, verifier: string): string | null {
  const { origin: name, publicKey } = readCosignerKey(verifier)
  const key = keyOf(publicKey)
  const genuine = signaturesIn(lines, name, COSIGNATURE, publicKey).find((signature) => {
    if (signature.length !== 72) return false
    const seconds = Number(signature.readBigUInt64BE())
    return seconds <= MAX_SECONDS && verify(null, cosigned(seconds, body), key, signature.subarray(8))
  })
  if (genuine === undefined) return null
  const bytes = Buffer.concat([keyId(name, COSIGNATURE, publicKey), genuine])
  return `\u2014 ${name} ${bytes.toString('base64')}\n`
}

function keyOf(publicKey: Uint8Array): KeyObject {
  const key = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') }
  return createPublicKey({ key, format: 'jwk' })
}

/** What a cosignature signs. */
function cosigned(seconds: number, body: string): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${seconds}\n${body}`)
}

/** Throws CheckpointError if it is not a verifier key of an audit log. */
export function readVerifierKey(text: string): { origin: string; publicKey: Uint8Array } {
  return readKey(text, ED25519, 'the public key is not one of an audit log')
}

/** As `readVerifierKey`, for the key of a witness. */
export function readCosignerKey(text: string): { origin: string; publicKey: Uint8Array } {
  return readKey(text, COSIGNATURE, 'the public key is not one of a witness')
}

function readKey(text: string, type: number, refusal: string): { origin: string; publicKey: Uint8Array } {
  const [, origin = '', encoded = ''] = /^([^+\s]+)\+[0-9a-f]{8}\+([\w+/]+={0,2})$/.exec(text) ?? []
  const publicKey = Buffer.from(encoded, 'base64').subarray(1)
  if (publicKey.length !== 32 || verifierKey(origin, { publicKey }, type) !== text) {
    throw new CheckpointError(refusal)
  }
  return { origin, publicKey }
}

/** The public key as a verifier key of signed notes: `<name>+<hash>+<key>`. */
export function verifierKey(
  origin: string,
  { publicKey }: Pick<SigningKey, 'publicKey'>,
  type = ED25519,
): string {
  const key = Buffer.concat([Buffer.from([type]), publicKey]).toString('base64')
  return `${origin}+${keyId(origin, type, publicKey).toString('hex')}+${key}`
}

function keyId(name: string, type: number, publicKey: Uint8Array): Buffer {
  const hashed = Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), publicKey])
  return Buffer.from(hash('sha256', hashed, 'buffer').subarray(0, 4))
}
