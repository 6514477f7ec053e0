import { readAttachment } from '#libs/mail/mime/attachment.js'
import { servedType } from './attachment-type.js'

export interface AttachmentRequest {
  raw: Uint8Array
  index: number
}

export interface AttachmentContent {
  filename: string | null
  mediaType: string
  content: Uint8Array
}

/** Runs in a thread of its own: cuts one attachment out of a mail's source. */
export default async function read({ raw, index }: AttachmentRequest): Promise<AttachmentContent | null> {
  const found = await readAttachment(Buffer.from(raw), index)
  if (found === null) return null
  const { meta, content } = found
  return { filename: meta.filename, mediaType: servedType(meta.contentType, content), content }
}
