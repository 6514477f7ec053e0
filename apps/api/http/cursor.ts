import { crc32 } from 'node:zlib'
import type { InboxId, WebhookId } from '#libs/domain/ids/typeid.js'
import { invalid, type Place, type Problem } from './problems.js'

/** Whose list a cursor goes through. */
type Owner = InboxId | WebhookId

/**
 * A place among an inbox's messages, or a webhook's deliveries, as offsets of the partition. What a client gets is
 * opaque, and is checked against whose it was given for.
 */
export interface MessageCursor {
  /** The first offset to be looked at. */
  from: number
  /** The first one not to be looked at any more; null for the inbox's end. Only a descending page sets it. */
  to: number | null
  /** The inbox's end as the first page read it. */
  end: number | null
}

const OFFSET_BYTES = 6
const FIELDS = 3
const NONE = 2 ** (8 * OFFSET_BYTES) - 1
const LENGTH = FIELDS * OFFSET_BYTES + 4

export function writeMessageCursor(owner: Owner, { from, to, end }: MessageCursor): string {
  const bytes = Buffer.alloc(LENGTH)
  const fields = [from, to ?? NONE, end ?? NONE]
  for (const [index, field] of fields.entries()) bytes.writeUIntBE(field, index * OFFSET_BYTES, OFFSET_BYTES)
  bytes.writeUInt32BE(sumOf(owner, bytes), LENGTH - 4)
  return bytes.toString('base64url')
}

/** Throws invalid-request, naming the property or parameter, if the text is no cursor of this owner's. */
export function readMessageCursor(
  owner: Owner,
  text: string,
  place: Place = { parameter: 'cursor' },
): MessageCursor {
  const bytes = Buffer.from(text, 'base64url')
  const isWhole = bytes.length === LENGTH && bytes.toString('base64url') === text
  if (!isWhole || bytes.readUInt32BE(LENGTH - 4) !== sumOf(owner, bytes)) throw badCursor(place)
  const field = (index: number): number => bytes.readUIntBE(index * OFFSET_BYTES, OFFSET_BYTES)
  const optional = (index: number): number | null => (field(index) === NONE ? null : field(index))
  return { from: field(0), to: optional(1), end: optional(2) }
}

function sumOf(owner: Owner, bytes: Buffer): number {
  return crc32(bytes.subarray(0, LENGTH - 4), crc32(owner))
}

function badCursor(place: Place): Problem {
  return invalid({ detail: 'the cursor is not from this list', ...place })
}
