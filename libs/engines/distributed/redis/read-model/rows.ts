import { Encoder } from 'cbor-x'
import type { Account, ApiKey } from '#libs/domain/account/account.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { REMOVED, Webhook } from '#libs/domain/webhook/webhook.js'
import type { HistoryEntry } from '#libs/ports/read-model/history.js'
import type { DeliveryRow, InboxRow, MessageRow, WebhookHealth } from '#libs/ports/read-model/views.js'

/** Rows as CBOR (RFC 8949), which keeps times and bytes as such. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

type WebhookRow = Webhook | typeof REMOVED
type Row = InboxRow | MessageRow | Account | ApiKey | WebhookRow | DeliveryRow | Replay | WebhookHealth

export function encodeRow(row: Row): Buffer {
  return cbor.encode(row)
}

// Only the projection store writes them, in the form that the slot names.
export const decodeInbox = (bytes: Buffer): InboxRow => cbor.decode(bytes) as InboxRow
export const decodeMessage = (bytes: Buffer): MessageRow => cbor.decode(bytes) as MessageRow
export const decodeAccount = (bytes: Buffer): Account => cbor.decode(bytes) as Account
export const decodeApiKey = (bytes: Buffer): ApiKey => cbor.decode(bytes) as ApiKey
export const decodeWebhook = (bytes: Buffer): WebhookRow => cbor.decode(bytes) as WebhookRow

export const decodeDelivery = (bytes: Buffer): DeliveryRow => cbor.decode(bytes) as DeliveryRow
export const decodeReplay = (bytes: Buffer): Replay => cbor.decode(bytes) as Replay
export const decodeHealth = (bytes: Buffer): WebhookHealth => cbor.decode(bytes) as WebhookHealth

type HistoryFields = [
  offset: number,
  id: HistoryEntry['id'],
  type: HistoryEntry['type'],
  timeMs: number,
  messageId: HistoryEntry['messageId'],
  keyId: HistoryEntry['keyId'],
  size: number | null,
  digest: Buffer | null,
]

/** Without names, since there are as many as events; the same bytes for the same entry, so that it is there once. */
export function encodeHistoryEntry(entry: HistoryEntry): Buffer {
  const { offset, id, type, time, messageId, keyId, size, digest } = entry
  const bytes = digest === null ? null : Buffer.from(digest, 'hex')
  return cbor.encode([
    offset,
    id,
    type,
    time.getTime(),
    messageId,
    keyId,
    size,
    bytes,
  ] satisfies HistoryFields)
}

export function decodeHistoryEntry(encoded: Buffer): HistoryEntry {
  const [offset, id, type, timeMs, messageId, keyId, size, digest] = cbor.decode(encoded) as HistoryFields
  const time = new Date(timeMs)
  return { offset, id, type, time, messageId, keyId, size, digest: digest?.toString('hex') ?? null }
}
