import { readAttachment } from '#libs/mail/mime/mime.js'

export interface AttachmentRequest {
  raw: Uint8Array
  index: number
}

export interface AttachmentContent {
  filename: string | null
  mediaType: string
  content: Uint8Array
}

/** Runs in a thread of its own: reads one attachment from a mail's source. */
export default async function read({ raw, index }: AttachmentRequest): Promise<AttachmentContent | null> {
  const found = await readAttachment(Buffer.from(raw), index)
  if (found === null) return null
  const { meta, content } = found
  return { filename: meta.filename, mediaType: servedType(meta.contentType, content), content }
}

const fallback = 'application/octet-stream'

/** Types that are harmless even if a browser shows them: no markup, no XML, nothing that can contain scripts. */
const harmless = new RegExp(
  `^(?:${[
    'text/(?:plain|csv|calendar)',
    'image/(?:png|jpeg|gif|webp|avif|bmp|tiff|heic)',
    'audio/[\\w.-]{1,80}',
    'video/[\\w.-]{1,80}',
    'font/[\\w.-]{1,80}',
    'message/rfc822',
    'application/(?:pdf|zip|gzip|json|octet-stream|msword|rtf)',
    'application/vnd\\.(?:ms-excel|ms-powerpoint|openxmlformats-officedocument\\.[\\w.-]{1,80}|oasis\\.opendocument\\.[\\w.-]{1,80})',
  ].join('|')})$`,
)

/** Names of actions that run code or open other content in a PDF (ISO 32000-1, sections 12.6.4 and 12.7.8). */
const activePdf = /\/(?:JavaScript|JS|Launch|RichMedia|XFA)(?![A-Za-z])/

/**
 * The media type of an attachment: the declared one if it is harmless, else application/octet-stream, also for a PDF that
 * names scripts. A PDF can still hide them in a compressed stream, so every attachment is sent to be saved, not shown.
 */
export function servedType(declared: string, content: Buffer): string {
  if (!harmless.test(declared)) return fallback
  return declared === 'application/pdf' && isActivePdf(content) ? fallback : declared
}

/** In linear time, which for 25 MB is a tenth of a second: for a thread of its own. */
function isActivePdf(content: Buffer): boolean {
  const text = content.toString('latin1')
  // A name may have any of its characters escaped (ISO 32000-1, section 7.3.5).
  const names = text.includes('#')
    ? text.replace(/#([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
    : text
  return activePdf.test(names)
}
