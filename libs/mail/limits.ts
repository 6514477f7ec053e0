/**
 * How much of a mail is read. Past a limit the rest is left out and a warning says so; nothing is refused.
 * Time and memory are not bounded here: whoever parses does so in a worker with limits of its own.
 */
export interface MailLimits {
  /** Header fields of the mail itself, folded lines counted once. */
  maxHeaders: number
  /** Bytes of the mail's own header block, and of each part's. */
  maxHeaderBytes: number
  /** MIME parts; the source is cut before the part that is one too many. */
  maxParts: number
  /** Multiparts within multiparts; what lies deeper is left out. */
  maxDepth: number
  maxAttachments: number
  maxLinks: number
  maxCodes: number
  /** UTF-8 bytes of `text`. */
  maxTextBytes: number
  /** UTF-8 bytes of `html`. */
  maxHtmlBytes: number
}

export const defaultMailLimits: MailLimits = {
  maxHeaders: 2_000,
  maxHeaderBytes: 1024 * 1024,
  maxParts: 1_000,
  maxDepth: 100,
  maxAttachments: 200,
  maxLinks: 1_000,
  maxCodes: 20,
  maxTextBytes: 5 * 1024 * 1024,
  maxHtmlBytes: 5 * 1024 * 1024,
}

/** The longest prefix of a text that is at most so many bytes in UTF-8; never half a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
