import { createHash } from 'node:crypto'
import type { Attachment, Warning } from '../message.js'
import { encodingWarning } from './body-text.js'
import type { PartHeader } from './part-header.js'
import { Base64, decodeQuotedPrintable } from './transfer-encodings.js'
import type { Part } from './well-formed.js'

/** Of base64 that is decoded at once: a large attachment is hashed without a copy of all of it. */
const PIECE_BYTES = 1024 * 1024

/** An attachment as it is listed; adds to the warnings. */
export function listAttachment(part: Part, index: number, warnings: Warning[]): Attachment {
  const hash = createHash('sha256')
  let size = 0
  for (const piece of decodedPieces(part)) {
    hash.update(piece)
    size += piece.length
  }
  return describeAttachment(part.header, { index, size, sha256: hash.digest('hex') }, warnings)
}

/** The decoded content of an attachment, in order. */
export function* decodedPieces({ header: { encoding }, body }: Part): Generator<Buffer> {
  if (encoding === 'quoted-printable') yield decodeQuotedPrintable(body)
  else if (encoding === 'base64') {
    const base64 = new Base64()
    for (let at = 0; at < body.length; at += PIECE_BYTES) {
      yield base64.decode(body.subarray(at, at + PIECE_BYTES))
    }
    yield base64.end()
  } else yield body
}

/** What the header says of an attachment, and what was counted of its content; adds to the warnings. */
export function describeAttachment(
  header: PartHeader,
  counted: Pick<Attachment, 'index' | 'size' | 'sha256'>,
  warnings: Warning[],
): Attachment {
  const warning = encodingWarning(header)
  if (warning !== null) warnings.push(warning)
  const { filename, type: contentType, contentId, isInline } = header
  const { index, size, sha256 } = counted
  return { index, filename, contentType, size, contentId, isInline, sha256 }
}
