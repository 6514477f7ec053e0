import { create as contentDisposition } from 'content-disposition'
import { cutToBytes } from '#libs/mail/limits.js'

/**
 * What an attachment goes out with: it is saved, never shown, since what a sender made must not run in anybody's
 * browser. The name is in both forms of RFC 6266 where it goes beyond ASCII. `mediaType` is what `servedType` gave.
 */
export function attachmentHeaders(filename: string | null, mediaType: string): Record<string, string> {
  return {
    'content-type': mediaType,
    'content-disposition': contentDisposition(safeFileName(filename)),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}

/** File systems take 255; browsers and downloads add to it. */
const maxBytes = 200
const fallback = 'attachment'

/** What is not seen: control characters, the bidirectional overrides that turn `fdp.exe` around, halves of characters. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** Devices on Windows, whatever ending is put to them. */
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\.|$)/i
const ending = /\.[^. ]{1,16}$/

/**
 * A name that can be saved under on any system: without folders, unseen characters, dots at its ends and the
 * names of devices, at most 200 bytes long, its ending kept; `attachment` where nothing is left.
 */
function safeFileName(given: string | null): string {
  const whole = given ?? ''
  const name = whole.slice(Math.max(whole.lastIndexOf('/'), whole.lastIndexOf('\\')) + 1)
  // A header may be a megabyte long, and no more of it than this can stay.
  const some = name.length > 1_000 ? name.slice(0, 900) + name.slice(-100) : name
  const clean = withoutEnds(some.replaceAll(unseen, ''))
  if (clean === '') return fallback
  const [end = ''] = ending.exec(clean) ?? []
  const stem = clean.slice(0, clean.length - end.length)
  const bounded = withoutEnds(cutToBytes(stem, maxBytes - Buffer.byteLength(end)) + end)
  return reserved.test(bounded) ? `_${bounded}` : bounded
}

/** A dot in front hides a file; Windows drops dots and spaces behind. */
function withoutEnds(name: string): string {
  return name.replace(/^[. ]+/, '').replace(/[. ]+$/, '')
}
