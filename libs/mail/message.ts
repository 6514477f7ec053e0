import type { MessageId } from '#libs/domain/ids/typeid.js'

/*
 * A parsed mail: its envelope and fields, and the limits of parsing.
 */

/** The trace of a mail, which other SMTP servers would write into Received headers. */
export interface Envelope {
  /** MAIL FROM; empty for the null reverse-path (RFC 5321, section 4.5.5). */
  mailFrom: string
  /** The RCPT TO for which this copy of the mail was accepted. */
  rcptTo: string
  /** The client's EHLO or HELO argument. */
  helo: string
  remoteAddress: string
  /** Null for a connection without TLS. */
  tls: { version: string; cipher: string } | null
  /** Absent if the mail was not verified. Stored, because later DNS queries could give other results. */
  authentication?: Authentication
  /** Present if the mail was put in by the HTTP API. */
  injected?: true
  /** The message that this one repeats on purpose. */
  duplicateOf?: MessageId
}

/** The results of verifying a mail's sender: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 9989), ARC (RFC 8617). */
export interface Authentication {
  /** For the domain of MAIL FROM, or for the HELO name if MAIL FROM is empty; null if it was not verified. */
  spf: Verification | null
  /** One for each signature. */
  dkim: SignatureVerification[]
  /** Null if the mail names no author domain, or it was not verified. */
  dmarc: (Verification & { policy: 'none' | 'quarantine' | 'reject' | null }) | null
  /** Present only if the mail has an ARC chain; `instances` is its length. */
  arc?: { result: AuthenticationResult; instances: number; detail: string | null }
}

export interface Verification {
  result: AuthenticationResult
  domain: string | null
  /** The reason, if one is known. */
  detail: string | null
}

export interface SignatureVerification extends Verification {
  selector: string | null
  algorithm: string | null
  /** Whether the signing domain matches the author's, as DMARC defines it. */
  aligned: boolean
}

/** RFC 8601, section 2.7. */
export type AuthenticationResult =
  'none' | 'neutral' | 'pass' | 'fail' | 'softfail' | 'policy' | 'temperror' | 'permerror'

export interface Mailbox {
  name: string | null
  address: string
}

export interface Link {
  href: string
  /** The anchor's visible text; null for a bare URL. */
  text: string | null
}

export interface OneTimeCode {
  /** As a user types it. */
  value: string
  /** As it is written in the mail. */
  text: string
  /** 0 to 1. */
  confidence: number
}

export interface Attachment {
  index: number
  filename: string | null
  contentType: string
  /** Bytes after decoding. */
  size: number
  contentId: string | null
  isInline: boolean
  /** Hex digest of the decoded bytes. */
  sha256: string
}

export interface Header {
  name: string
  value: string
}

export interface Warning {
  code: WarningCode
  detail: string
}

export type WarningCode =
  | 'too-many-headers'
  | 'too-many-addresses'
  | 'too-many-parts'
  | 'too-many-attachments'
  | 'too-many-links'
  | 'text-truncated'
  | 'html-truncated'
  | 'invalid-date'
  /** The charset of a text is unknown, or its bytes are not valid in it. */
  | 'charset-guessed'
  | 'unknown-encoding'
  | 'parse-failed'
  | 'parse-timeout'
  /** Only the header was read, because earlier mails used up the inbox's time for parsing. */
  | 'parse-over-budget'
  | 'parse-out-of-memory'
  /** The stored bytes are damaged, so nothing could be read. */
  | 'seal-broken'

/** A parsed mail: every property of an API message that is computed from its source and envelope. */
export interface ParsedMail {
  subject: string | null
  /** The first From address, else the envelope's MAIL FROM. */
  sender: string
  recipient: string
  from: Mailbox[]
  to: Mailbox[]
  cc: Mailbox[]
  replyTo: Mailbox[]
  /** The Date header as RFC 3339 in UTC with milliseconds; null if missing or unreadable. */
  date: string | null
  text: string | null
  html: string | null
  /** The visible text of `html`; null without `html`. */
  htmlText: string | null
  links: Link[]
  codes: OneTimeCode[]
  attachments: Attachment[]
  headers: Header[]
  envelope: Envelope
  /** Bytes of the source. */
  size: number
  /** Hex digest of the source. */
  sha256: string
  warnings: Warning[]
}

/**
 * Limits of the parser. Parts of a mail beyond a limit are left out, with a warning; no mail is refused. Time and memory are
 * not limited here, but by the worker that runs the parser.
 */
export interface MailLimits {
  /** Header fields of the mail itself; a folded field counts once. */
  maxHeaders: number
  /** Bytes of the mail's own header block, and of each part's. */
  maxHeaderBytes: number
  /** Mailboxes in each of From, To, Cc and Reply-To. */
  maxMailboxes: number
  /** MIME parts; the source is cut before the first part above this number. */
  maxParts: number
  /** Levels of nested multiparts; deeper parts are left out. */
  maxDepth: number
  maxAttachments: number
  maxLinks: number
  maxCodes: number
  /** Bytes of `text` as a JSON string: what it takes to store, decrypt and send it. */
  maxTextBytes: number
  /** The same for `html`. */
  maxHtmlBytes: number
}

export const DEFAULT_MAIL_LIMITS: MailLimits = {
  maxHeaders: 2_000,
  maxHeaderBytes: 1024 * 1024,
  maxMailboxes: 1_000,
  maxParts: 1_000,
  maxDepth: 100,
  maxAttachments: 200,
  maxLinks: 1_000,
  maxCodes: 20,
  maxTextBytes: 5 * 1024 * 1024,
  maxHtmlBytes: 5 * 1024 * 1024,
}

/** The longest prefix of a text that has at most `maxBytes` bytes in UTF-8; never half a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  const bytes = Buffer.from(text)
  let end = maxBytes
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
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
