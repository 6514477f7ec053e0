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
  // Told the size, zstd takes tables to match instead of the half megabyte of an unknown one.
  const options = { ...FASTEST, pledgedSrcSize: raw.length, chunkSize: chunkFor(raw.length) }
  const zstd = isLarge ? await compressAsync(raw, options) : zstdCompressSync(raw, options)
  return { size: raw.length, zstd }
}

/** Of the buffer that zlib fills: what a mail of that size needs, or zlib's own choice where it is large. */
function chunkFor(size: number): number {
  return Math.min(Math.max(size >> 1, 1024), 16 * 1024)
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
  const options = { maxOutputLength: Math.max(size, 1) }
  const raw =
    size < ASYNC_FROM_BYTES ? zstdDecompressSync(zstd, options) : await decompressAsync(zstd, options)
  return { envelope, raw }
}

/** Seals a JSON value for a purpose that opening must name too. */
export function sealJson(key: SecretKey, context: string, value: unknown): Buffer {
  return seal(key, context, zstdCompressSync(JSON.stringify(value), FASTEST))
}

export function unsealJson(key: SecretKey, context: string, sealed: Uint8Array): unknown {
  return JSON.parse(unsealJsonText(key, context, sealed))
}

export function unsealJsonText(key: SecretKey, context: string, sealed: Uint8Array): string {
  return zstdDecompressSync(unseal(key, context, sealed)).toString()
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
