import { Encoder } from 'cbor-x'
import type { Account, ApiKey } from '#libs/account/account.js'
import type { InboxRow, MessageRow } from '../views.js'

/** Rows as CBOR (RFC 8949), which keeps times and bytes as such. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false })

type Row = InboxRow | MessageRow | Account | ApiKey

export function encodeRow(row: Row): Buffer {
  return cbor.encode(row)
}

// Only the projection store writes them, in the form that the slot names.
export const decodeInbox = (bytes: Buffer): InboxRow => cbor.decode(bytes) as InboxRow
export const decodeMessage = (bytes: Buffer): MessageRow => cbor.decode(bytes) as MessageRow
export const decodeAccount = (bytes: Buffer): Account => cbor.decode(bytes) as Account
export const decodeApiKey = (bytes: Buffer): ApiKey => cbor.decode(bytes) as ApiKey
