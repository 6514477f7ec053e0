/*
 * Limits of a parsed mail, and texts cut to a number of bytes.
 */

/**
 * Limits of the parser. Parts of a mail beyond a limit are left out, with a warning; no mail is refused. Time and memory are
 * not limited here, but by the worker that runs the parser.
 */
export const DEFAULT_MAIL_LIMITS = {
  /** Header fields of the mail itself; a folded field counts once. */
  maxHeaders: 2_000,
  /** Bytes of the mail's own header block, and of each part's. */
  maxHeaderBytes: 1024 * 1024,
  /** Mailboxes in each of From, To, Cc and Reply-To. */
  maxMailboxes: 1_000,
  /** MIME parts; the source is cut before the first part above this number. */
  maxParts: 1_000,
  /** Levels of nested multiparts; deeper parts are left out. */
  maxDepth: 100,
  maxAttachments: 200,
  maxLinks: 1_000,
  maxCodes: 20,
  /** Bytes of `text` as a JSON string: what it takes to store, decrypt and send it. */
  maxTextBytes: 5 * 1024 * 1024,
  /** The same for `html`. */
  maxHtmlBytes: 5 * 1024 * 1024,
}

export type MailLimits = Readonly<typeof DEFAULT_MAIL_LIMITS>

/** The longest prefix of a text that has at most `maxBytes` bytes in UTF-8; never half a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(maxBytes)).read)
}

/** The longest prefix of a text that has at most `maxBytes` bytes in a JSON string (RFC 8259, section 7) in UTF-8. */
export function cutToJsonBytes(text: string, maxBytes: number): string {
  if (text.length * MAX_JSON_BYTES <= maxBytes) return text
  let bytes = 0
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    const isPair = unit >= 0xd800 && unit < 0xdc00
    bytes += isPair ? 4 : jsonBytesOf(unit)
    if (bytes > maxBytes) return text.slice(0, at)
    if (isPair) at += 1
  }
  return text
}

/** Bytes of a control character, such as `\u0000`. */
const MAX_JSON_BYTES = 6

function jsonBytesOf(unit: number): number {
  if (unit >= 0x800) return 3
  if (unit >= 0x80) return 2
  if (unit >= 0x20) return unit === QUOTE || unit === BACKSLASH ? 2 : 1
  // \b, \t, \n, \f and \r.
  return unit >= 0x08 && unit <= 0x0d && unit !== 0x0b ? 2 : MAX_JSON_BYTES
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
