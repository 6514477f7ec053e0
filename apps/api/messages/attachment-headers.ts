import { create as contentDisposition } from 'content-disposition'
import { cutToBytes } from '#libs/mail/limits.js'

/**
 * The headers of an attachment. Browsers save it and never show it, so that no sender's content runs in them. A name
 * that is not ASCII is sent in both forms of RFC 6266. `mediaType` is the result of `servedType`.
 */
export function attachmentHeaders(filename: string, mediaType: string): Record<string, string> {
  return {
    'content-type': mediaType,
    'content-disposition': contentDisposition(safeFileName(filename)),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}

/** File systems allow 255; browsers add to the name. */
const MAX_BYTES = 200
const FALLBACK = 'attachment'

/** Control characters, bidirectional overrides, which reverse `fdp.exe`, and lone surrogates. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** Device names on Windows, with any extension. */
const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)/i
const ENDING = /\.[^. ]{1,16}$/

/**
 * A file name that every system accepts: without folders, invisible characters, dots at its start and end, and device
 * names; at most 200 bytes with its extension. `attachment` if nothing remains.
 */
function safeFileName(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
  // A header may have a megabyte, and the result has only 200 bytes.
  const shortened = name.length > 1_000 ? name.slice(0, 900) + name.slice(-100) : name
  const clean = withoutEnds(shortened.replaceAll(INVISIBLE, ''))
  if (clean === '') return FALLBACK
  const [end = ''] = ENDING.exec(clean) ?? []
  const stem = clean.slice(0, clean.length - end.length)
  const bounded = withoutEnds(cutToBytes(stem, MAX_BYTES - Buffer.byteLength(end)) + end)
  return RESERVED.test(bounded) ? `_${bounded}` : bounded
}

/** A leading dot hides a file; Windows drops trailing dots and spaces. */
function withoutEnds(name: string): string {
  return name.replace(/^[. ]+/, '').replace(/[. ]+$/, '')
}
