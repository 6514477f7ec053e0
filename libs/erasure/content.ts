import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from 'node:zlib'
import { promisify } from 'node:util'
import type { Envelope } from '#libs/mail/message.js'
import type { InboxId, MessageId } from '#libs/typeid/typeid.js'
import { seal, unseal, type SecretKey } from './seal.js'

/*
 * What is sealed, and how it is laid out before. A mail: the envelope's length (32 bits, big-endian), the
 * envelope as JSON, the source's length (32 bits), the source as zstd (RFC 8878). Anything else: JSON as zstd.
 */

export interface MailContent {
  envelope: Envelope
  raw: Buffer
}

const FASTEST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
/** What comes out is allocated in pieces of that size, whatever its length: 16 KiB where nothing is said. */
const LEAST_CHUNK_BYTES = 1024
const MOST_CHUNK_BYTES = 64 * 1024
/** Below it compressing in place costs less than handing it to another thread. */
const ASYNC_FROM_BYTES = 128 * 1024

const compressAsync = promisify(zstdCompress)
const decompressAsync = promisify(zstdDecompress)

/** A source made ready once for all its recipients. */
export interface PackedSource {
  size: number
  zstd: Buffer
}

export async function packSource(raw: Buffer): Promise<PackedSource> {
  const isLarge = raw.length >= ASYNC_FROM_BYTES
  const zstd = isLarge ? await compressAsync(raw, FASTEST) : compressNow(raw)
  return { size: raw.length, zstd }
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
  const plaintext = Buffer.concat([lengths[0], head, lengths[1], source.zstd])
  return seal(key, mailContext(inboxId, messageId), plaintext)
}

/** Throws SealBrokenError where the bytes were not sealed for this message. */
export async function unsealMail(
  key: SecretKey,
  inboxId: InboxId,
  messageId: MessageId,
  sealed: Uint8Array,
): Promise<MailContent> {
  const plaintext = unseal(key, mailContext(inboxId, messageId), sealed)
  const headEnd = 4 + plaintext.readUInt32BE(0)
  const envelope = JSON.parse(plaintext.toString('utf8', 4, headEnd)) as Envelope
  const size = plaintext.readUInt32BE(headEnd)
  const zstd = plaintext.subarray(headEnd + 4)
  const options = { maxOutputLength: Math.max(size, 1), chunkSize: chunkSize(size) }
  const raw =
    size < ASYNC_FROM_BYTES ? zstdDecompressSync(zstd, options) : await decompressAsync(zstd, options)
  return { envelope, raw }
}

/** Seals a JSON value for a purpose that opening must name too. */
export function sealJson(key: SecretKey, context: string, value: unknown): Buffer {
  return seal(key, context, compressNow(Buffer.from(JSON.stringify(value))))
}

export function unsealJson(key: SecretKey, context: string, sealed: Uint8Array): unknown {
  return JSON.parse(unsealJsonText(key, context, sealed))
}

export function unsealJsonText(key: SecretKey, context: string, sealed: Uint8Array): string {
  return zstdDecompressSync(unseal(key, context, sealed)).toString()
}

/** Text shrinks to less than half: one piece most often. */
function compressNow(plain: Buffer): Buffer {
  return zstdCompressSync(plain, {
    ...FASTEST,
    pledgedSrcSize: plain.length,
    chunkSize: chunkSize(plain.length / 2),
  })
}

function chunkSize(bytes: number): number {
  return Math.min(Math.max(Math.ceil(bytes), LEAST_CHUNK_BYTES), MOST_CHUNK_BYTES)
}

export function detailsContext(inboxId: InboxId): string {
  return `details:${inboxId}`
}

export function bodyContext(inboxId: InboxId, messageId: MessageId): string {
  return `body:${inboxId}:${messageId}`
}

function mailContext(inboxId: InboxId, messageId: MessageId): string {
  return `mail:${inboxId}:${messageId}`
}
