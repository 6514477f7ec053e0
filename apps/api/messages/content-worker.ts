import { attachmentName } from '#libs/mail/attachment-name.js'
import { htmlCheck } from '#libs/mail/html-check/html-check.js'
import { readAttachment, readEmbeddedParts } from '#libs/mail/mime/mime.js'
import { HtmlTooComplexError, mailDocument } from '../console/mail-document.js'
import { dataUrlsOf } from '../console/mail-images.js'

/*
 * The jobs of a thread that reads the content of mails: a function for each.
 */

export interface AttachmentRequest {
  raw: Uint8Array
  index: number
}

export interface AttachmentContent {
  filename: string
  mediaType: string
  content: Uint8Array
}

export interface MailToShow {
  html: string
  isRemoteAllowed: boolean
  /** The source of the mail, to read its images from; null if it has none. */
  raw: Uint8Array | null
}

export interface ShownMail {
  document: Uint8Array
  /** Number of images of the web that the document does not load. */
  blocked: number
}

/** Reads one attachment from the source of a mail. */
export function openAttachment({ raw, index }: AttachmentRequest): AttachmentContent | null {
  const found = readAttachment(Buffer.from(raw), index)
  if (found === null) return null
  const { meta, content } = found
  return {
    filename: attachmentName(meta.filename, meta.contentType),
    mediaType: servedType(meta.contentType, content),
    content,
  }
}

const NO_PARTS = { parts: [], baseUrl: undefined }

/** Makes a document of the HTML of a mail. Null if it is too complex. */
export function makeDocument({ html, isRemoteAllowed, raw }: MailToShow): ShownMail | null {
  const { parts, baseUrl } = raw === null ? NO_PARTS : readEmbeddedParts(Buffer.from(raw))
  try {
    const inlineImages = dataUrlsOf(parts)
    const { document, blocked } = mailDocument({ html, isRemoteAllowed, inlineImages, baseUrl })
    return { document: Buffer.from(document), blocked }
  } catch (error) {
    if (error instanceof HtmlTooComplexError) return null
    throw error
  }
}

/** What mail clients support of HTML, as JSON. Null if the HTML is too complex. */
export function checkHtml(html: string): Uint8Array | null {
  const check = htmlCheck(html)
  return check === null ? null : Buffer.from(JSON.stringify(check))
}

const FALLBACK = 'application/octet-stream'

/** Types that are harmless even if a browser shows them: no markup, no XML, no type that can contain scripts. */
const HARMLESS = new RegExp(
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
const ACTIVE_PDF = /\/(?:JavaScript|JS|Launch|RichMedia|XFA)(?![A-Za-z])/

/**
 * The media type of an attachment: the declared type if it is harmless; otherwise, and for a PDF with scripts,
 * application/octet-stream. A PDF can hide scripts in a compressed stream, so browsers must save every attachment.
 */
export function servedType(declared: string, content: Buffer): string {
  if (!HARMLESS.test(declared)) return FALLBACK
  return declared === 'application/pdf' && isActivePdf(content) ? FALLBACK : declared
}

/** Takes linear time: a tenth of a second for 25 MB. */
function isActivePdf(content: Buffer): boolean {
  const text = content.toString('latin1')
  // A name may have any of its characters escaped (ISO 32000-1, section 7.3.5).
  const names = text.includes('#')
    ? text.replace(/#([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
    : text
  return ACTIVE_PDF.test(names)
}
