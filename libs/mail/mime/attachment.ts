import { defaultMailLimits, type MailLimits } from '../limits.js'
import type { Attachment } from '../message.js'
import { readAttachments } from './mime.js'

/**
 * One attachment's decoded bytes, by the index that `parseMail` gave it under the same limits; null if there is
 * none. Rejects as `parseMail` does.
 */
export async function readAttachment(
  raw: Buffer,
  index: number,
  limits: MailLimits = defaultMailLimits,
): Promise<{ meta: Attachment; content: Buffer } | null> {
  const pieces: Buffer[] = []
  const attachments = await readAttachments(raw, limits, (at, piece) => {
    if (at === index) pieces.push(piece)
  })
  const meta = attachments[index]
  return meta === undefined ? null : { meta, content: Buffer.concat(pieces) }
}
