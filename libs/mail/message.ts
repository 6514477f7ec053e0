/** What the SMTP edge knew of a mail: the trace that other servers would write into Received headers. */
export interface Envelope {
  /** MAIL FROM; empty for the null reverse-path (RFC 5321, section 4.5.5). */
  mailFrom: string
  /** The one RCPT TO that this copy of the mail was accepted for. */
  rcptTo: string
  /** The client's EHLO or HELO argument. */
  helo: string
  remoteAddress: string
  /** Null for a connection in the clear. */
  tls: { version: string; cipher: string } | null
  /** Absent if it was not verified: DNS is asked once, when the mail comes, so that every reading gives the same result. */
  authentication?: Authentication
}

/** Whether a mail is from whom it says: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 9989), ARC (RFC 8617). */
export interface Authentication {
  /** Of the domain of MAIL FROM, or of the HELO name where that is empty; null if it was not verified. */
  spf: Verification | null
  /** One for each signature. */
  dkim: SignatureVerification[]
  /** Null if the mail names no author domain, or it was not verified. */
  dmarc: (Verification & { policy: 'none' | 'quarantine' | 'reject' | null }) | null
  /** Only of a mail that has a chain; `instances` is its length. */
  arc?: { result: AuthenticationResult; instances: number; detail: string | null }
}

export interface Verification {
  result: AuthenticationResult
  domain: string | null
  /** Why, where there is more to say. */
  detail: string | null
}

export interface SignatureVerification extends Verification {
  selector: string | null
  algorithm: string | null
  /** Whether the signing domain is the author's, as DMARC has it. */
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
  /** What a user types. */
  value: string
  /** What stands in the mail. */
  text: string
  /** 0 to 1. */
  confidence: number
}

export interface Attachment {
  index: number
  filename: string | null
  contentType: string
  /** Bytes once decoded. */
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
  /** A text's charset is unknown or does not fit its bytes. */
  | 'charset-guessed'
  | 'unknown-encoding'
  | 'parse-failed'
  | 'parse-timeout'
  /** Of a mail behind others of its inbox that took all the time there was: its header alone was read. */
  | 'parse-over-budget'
  | 'parse-out-of-memory'
  /** Of a mail whose stored bytes are damaged: nothing of it can be told. */
  | 'seal-broken'

/** A mail, read: everything of an API message that follows from its source and envelope. */
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
  /** What a reader of `html` sees; null without `html`. */
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
