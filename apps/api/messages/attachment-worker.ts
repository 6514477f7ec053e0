import { readAttachment } from '#libs/mail/attachment.js'
import type { Attachment } from '#libs/mail/message.js'

export interface AttachmentRequest {
  raw: Uint8Array
  index: number
}

export interface AttachmentContent {
  meta: Attachment
  content: Uint8Array
}

/** Runs in a thread of its own: cuts one attachment out of a mail's source. */
export default function read({ raw, index }: AttachmentRequest): Promise<AttachmentContent | null> {
  return readAttachment(Buffer.from(raw), index)
}
