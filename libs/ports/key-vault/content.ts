import { createHmac, createSecretKey } from 'node:crypto'
import type { Envelope } from '#libs/mail/message.js'
import type { DeliveryId, InboxId, MessageId } from '#libs/domain/ids/typeid.js'
import { pack, packNow, unpack, unpackNow } from './packing.js'
import { seal, unseal, type SecretKey } from './seal.js'

/*
 * What is sealed, and how it is laid out before. A mail: the envelope's length (32 bits, big-endian), the
 * envelope as JSON, the source's length (32 bits), the source packed. Anything else: JSON, packed.
 */

export interface MailContent {
  envelope: Envelope
  raw: Buffer
}

/** A source made ready once for all its recipients. */
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

/** The same, while everybody waits: in a thread of its own, where waiting for another one's turns costs more. */
export function unsealMailNow(
  key: SecretKey,
  inboxId: InboxId,
  messageId: MessageId,
  sealed: Uint8Array,
): MailContent {
  const { envelope, packed, size } = layoutOf(unseal(key, mailContext(inboxId, messageId), sealed))
  return { envelope, raw: unpackNow(packed, size) }
}

function layoutOf(plaintext: Buffer): { envelope: Envelope; packed: Buffer; size: number } {
  const headEnd = 4 + plaintext.readUInt32BE(0)
  const envelope = JSON.parse(plaintext.toString('utf8', 4, headEnd)) as Envelope
  return { envelope, packed: plaintext.subarray(headEnd + 4), size: plaintext.readUInt32BE(headEnd) }
}

/** Seals a JSON value for a purpose that opening must name too. */
export function sealJson(key: SecretKey, context: string, value: unknown): Buffer {
  return seal(key, context, packNow(Buffer.from(JSON.stringify(value))))
}

export function unsealJson(key: SecretKey, context: string, sealed: Uint8Array): unknown {
  return JSON.parse(unsealJsonText(key, context, sealed))
}

export function unsealJsonText(key: SecretKey, context: string, sealed: Uint8Array): string {
  return unpackNow(unseal(key, context, sealed)).toString()
}

/**
 * 16 hex digits (64 bits) that are the same for the same text and key in the same context, and tell nothing of the text
 * once the key is forgotten (HMAC, RFC 2104).
 */
export function fingerprintOf(key: SecretKey, context: string, text: string): string {
  return createHmac('sha256', createSecretKey(key)).update(`${context}\0${text}`).digest('hex').slice(0, 16)
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
