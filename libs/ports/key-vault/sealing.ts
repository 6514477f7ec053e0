import { kMaxLength } from 'node:buffer'
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from 'node:zlib'
import type { DeliveryId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import type { Envelope } from '#libs/mail/message.js'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { MailWithSpans } from '#libs/mail/parse.js'
import { readMail, writeMail } from '#libs/mail/stored-mail.js'
import { NamedError } from '#libs/runtime/errors.js'

/*
 * Sealed content: encryption with authentication, the layout of sealed mail and JSON, and compression before sealing.
 */

/** A 256-bit key for sealing and unsealing. */
export type SecretKey = Buffer & { readonly __secret: true }

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES

/** The bytes that sealing adds to a plaintext. */
export const SEAL_OVERHEAD_BYTES = HEAD_BYTES + TAG_BYTES

const SECRET_KEY_BYTES = 32

export function makeSecretKey(): SecretKey {
  return secretKey(randomBytes(SECRET_KEY_BYTES))
}

export function secretKey(bytes: Buffer): SecretKey {
  if (bytes.length !== SECRET_KEY_BYTES) throw new RangeError(`a key has ${SECRET_KEY_BYTES} bytes`)
  return bytes as SecretKey
}

const keyObjects = new WeakMap<SecretKey, KeyObject>()

/**
 * The key as ciphers take it, made once for each key: making it takes a third of the time of sealing a mail, and Node
 * takes longer to check a plain buffer than to seal with it.
 */
function keyObjectOf(key: SecretKey): KeyObject {
  const known = keyObjects.get(key)
  if (known !== undefined) return known
  const made = createSecretKey(key)
  keyObjects.set(key, made)
  return made
}

/**
 * Seals with AES-256-GCM (NIST SP 800-38D) and a random 96-bit nonce. The result is version, nonce, ciphertext and tag.
 * `context` names the purpose; it is authenticated but not stored, and must be the same for unsealing. A key must seal
 * fewer than 2^32 texts (section 8.3): no inbox reaches that, and an account seals one for each request that changes it.
 */
export function seal(key: SecretKey, context: string, plaintext: Uint8Array): Buffer {
  const nonce = nextNonce()
  const cipher = createCipheriv('aes-256-gcm', keyObjectOf(key), nonce)
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
  const decipher = createDecipheriv('aes-256-gcm', keyObjectOf(key), sealed.subarray(1, HEAD_BYTES))
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

export class SealBrokenError extends NamedError {
  constructor(context: string, options?: ErrorOptions) {
    super(`sealed bytes can't be opened: ${context}`, options)
  }
}

let nonces = Buffer.alloc(0)

/** Nonces are generated in blocks, since a system call for each would take longer than the sealing. */
function nextNonce(): Buffer {
  if (nonces.length < NONCE_BYTES) nonces = randomBytes(NONCE_BYTES * 512)
  const nonce = nonces.subarray(0, NONCE_BYTES)
  nonces = nonces.subarray(NONCE_BYTES)
  return nonce
}

/*
 * The layout of plaintexts. A mail: the length of the envelope (32 bits, big-endian), the envelope as JSON, the length of
 * the source (32 bits), and the packed source. Everything else: packed JSON.
 */

export interface MailContent {
  envelope: Envelope
  raw: Buffer
}

/** The source of a mail, packed once for all its recipients. */
export interface PackedSource {
  size: number
  packed: Buffer
}

export async function packSource(raw: Buffer): Promise<PackedSource> {
  return { size: raw.length, packed: await pack(raw) }
}

export function sealMail(
  key: SecretKey,
  inboxId: InboxId,
  messageId: MessageId,
  envelope: Envelope,
  source: PackedSource,
): Buffer {
  const head = Buffer.from(JSON.stringify(envelope))
  const lengths = [Buffer.allocUnsafe(4), Buffer.allocUnsafe(4)] as const
  lengths[0].writeUInt32BE(head.length)
  lengths[1].writeUInt32BE(source.size)
  const plaintext = Buffer.concat([lengths[0], head, lengths[1], source.packed])
  return seal(key, mailContext(inboxId, messageId), plaintext)
}

/** Throws SealBrokenError if the bytes were not sealed for this message. */
export async function unsealMail(
  key: SecretKey,
  inboxId: InboxId,
  messageId: MessageId,
  sealed: Uint8Array,
): Promise<MailContent> {
  const { envelope, packed, size } = layoutOf(unseal(key, mailContext(inboxId, messageId), sealed))
  return { envelope, raw: await unpack(packed, size) }
}

/**
 * Unseals a mail synchronously, for worker threads, where an asynchronous call would take longer. Throws SealBrokenError if
 * the bytes were not sealed for this message.
 */
export function unsealMailSync(
  key: SecretKey,
  inboxId: InboxId,
  messageId: MessageId,
  sealed: Uint8Array,
): MailContent {
  const { envelope, packed, size } = layoutOf(unseal(key, mailContext(inboxId, messageId), sealed))
  return { envelope, raw: unpackSync(packed, size) }
}

function layoutOf(plaintext: Buffer): { envelope: Envelope; packed: Buffer; size: number } {
  const headEnd = 4 + plaintext.readUInt32BE(0)
  const envelope = JSON.parse(plaintext.toString('utf8', 4, headEnd)) as Envelope
  return { envelope, packed: plaintext.subarray(headEnd + 4), size: plaintext.readUInt32BE(headEnd) }
}

/** Seals a JSON value. Unsealing requires the same context. */
export function sealJson(key: SecretKey, context: string, value: unknown): Buffer {
  return seal(key, context, packSync(Buffer.from(JSON.stringify(value))))
}

/** The JSON value that was sealed. Throws SealBrokenError if the bytes were not sealed with this context. */
export function unsealJson(key: SecretKey, context: string, sealed: Uint8Array): unknown {
  return JSON.parse(unpackSync(unseal(key, context, sealed)).toString())
}

/** Seals a parsed mail. */
export function sealBody(
  key: SecretKey,
  { inboxId, messageId }: { inboxId: InboxId; messageId: MessageId },
  { mail, spans }: MailWithSpans,
): Buffer {
  return seal(key, bodyContext(inboxId, messageId), packSync(Buffer.from(writeMail(mail, spans))))
}

/** The sealed parsed mail of a message, and the sealed source; null if `needsSource` of its size is false. */
export interface SealedParts {
  body: Uint8Array
  raw: Uint8Array | null
}

/**
 * Opens the parsed mail of a message. If the source is damaged, it has no texts that are only there. Throws
 * SealBrokenError if the body was not sealed for this message, and as `readMail`.
 */
export function openBody(
  key: SecretKey,
  { id, inboxId, receivedAt }: Pick<OpenedMessage, 'id' | 'inboxId' | 'receivedAt'>,
  { body, raw }: SealedParts,
): OpenedMessage {
  const json = unpackSync(unseal(key, bodyContext(inboxId, id), body))
  const read = readMail(json.toString(), () => raw && sourceOrNull(key, inboxId, id, raw))
  return { id, inboxId, receivedAt, ...read }
}

/** Null if the bytes were not sealed for this message. */
function sourceOrNull(key: SecretKey, inboxId: InboxId, id: MessageId, sealed: Uint8Array): Buffer | null {
  try {
    return unsealMailSync(key, inboxId, id, sealed).raw
  } catch (error) {
    if (error instanceof SealBrokenError) return null
    throw error
  }
}

/**
 * 16 hex digits (64 bits) of an HMAC (RFC 2104): the same for the same text, key and context. They reveal nothing of the
 * text once the key is forgotten.
 */
export function fingerprintOf(key: SecretKey, context: string, text: string): string {
  return createHmac('sha256', keyObjectOf(key)).update(`${context}\0${text}`).digest('hex').slice(0, 16)
}

export function detailsContext(inboxId: InboxId): string {
  return `details:${inboxId}`
}

export function bodyContext(inboxId: InboxId, messageId: MessageId): string {
  return `body:${inboxId}:${messageId}`
}

export function answerContext(deliveryId: DeliveryId, attempt: number): string {
  return `answer:${deliveryId}:${attempt}`
}

function mailContext(inboxId: InboxId, messageId: MessageId): string {
  return `mail:${inboxId}:${messageId}`
}

/*
 * Plaintexts are packed before sealing: a byte for the format, then the bytes, plain or compressed with zstd (RFC 8878).
 * Small ones are not compressed, since that would take more time than it saves (docs/decisions/0007-packing.md).
 */

const PLAIN = Buffer.from([0])
const ZSTD = Buffer.from([1])

const COMPRESS_FROM_BYTES = 16 * 1024
/** Below this size, synchronous compression takes less time than the use of another thread. */
const ASYNC_FROM_BYTES = 128 * 1024
/** Output is allocated in chunks of this size. Node's default is 16 KiB. */
const MAX_CHUNK_BYTES = 64 * 1024

const compressAsync = promisify(zstdCompress)
const decompressAsync = promisify(zstdDecompress)

export async function pack(plain: Buffer): Promise<Buffer> {
  if (plain.length < ASYNC_FROM_BYTES) return packSync(plain)
  return Buffer.concat([ZSTD, await compressAsync(plain, compressionOptions(plain))])
}

/** The same, synchronously. */
export function packSync(plain: Buffer): Buffer {
  if (plain.length < COMPRESS_FROM_BYTES) return Buffer.concat([PLAIN, plain])
  return Buffer.concat([ZSTD, zstdCompressSync(plain, compressionOptions(plain))])
}

/** Unpacks at most `maxBytes`. Rejects if there are more, or if the format is unknown. */
export async function unpack(packed: Buffer, maxBytes: number): Promise<Buffer> {
  if (packed[0] !== ZSTD[0] || maxBytes < ASYNC_FROM_BYTES) return unpackSync(packed, maxBytes)
  return decompressAsync(packed.subarray(1), { maxOutputLength: maxBytes, chunkSize: MAX_CHUNK_BYTES })
}

/** The same, synchronously. */
export function unpackSync(packed: Buffer, maxBytes: number = kMaxLength): Buffer {
  const content = packed.subarray(1)
  if (packed[0] === PLAIN[0]) return content
  if (packed[0] !== ZSTD[0]) throw new TypeError('packed in an unknown format')
  return zstdDecompressSync(content, { maxOutputLength: maxBytes, chunkSize: MAX_CHUNK_BYTES })
}

/** The fastest level, which compresses text to less than half. With a known length, zstd uses tables of fitting size. */
function compressionOptions(plain: Buffer) {
  return {
    params: { [constants.ZSTD_c_compressionLevel]: 1 },
    pledgedSrcSize: plain.length,
    chunkSize: Math.min(plain.length >> 1, MAX_CHUNK_BYTES),
  }
}
