import { create as contentDisposition } from 'content-disposition'
import { cutToBytes } from '#libs/mail/message.js'

/**
 * The headers of an attachment: browsers save it and never show it, so that no sender's content runs in them. A name that
 * is not ASCII is in both forms of RFC 6266. `mediaType` comes from `servedType`.
 */
export function attachmentHeaders(filename: string | null, mediaType: string): Record<string, string> {
  return {
    'content-type': mediaType,
    'content-disposition': contentDisposition(safeFileName(filename)),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}

/** File systems allow 255; browsers add to the name. */
const maxBytes = 200
const fallback = 'attachment'

/** Invisible: control characters, the bidirectional overrides that turn `fdp.exe` around, halves of characters. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** Devices on Windows, with any extension. */
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)/i
const ending = /\.[^. ]{1,16}$/

/**
 * A file name that any system accepts: without folders, invisible characters, dots at its ends and names of devices, at
 * most 200 bytes long with its extension; `attachment` if nothing is left.
 */
function safeFileName(given: string | null): string {
  const whole = given ?? ''
  const name = whole.slice(Math.max(whole.lastIndexOf('/'), whole.lastIndexOf('\\')) + 1)
  // A header may be a megabyte long, and the name keeps no more of it than this.
  const some = name.length > 1_000 ? name.slice(0, 900) + name.slice(-100) : name
  const clean = withoutEnds(some.replaceAll(unseen, ''))
  if (clean === '') return fallback
  const [end = ''] = ending.exec(clean) ?? []
  const stem = clean.slice(0, clean.length - end.length)
  const bounded = withoutEnds(cutToBytes(stem, maxBytes - Buffer.byteLength(end)) + end)
  return reserved.test(bounded) ? `_${bounded}` : bounded
}

/** A leading dot hides a file; Windows drops trailing dots and spaces. */
function withoutEnds(name: string): string {
  return name.replace(/^[. ]+/, '').replace(/[. ]+$/, '')
}
