import Type, { type Static } from 'typebox'
import {
  list,
  named,
  object,
  optional,
  type ValueOf,
  type ValuesOf,
} from '#libs/domain/event-sourcing/declare.js'
import { Count, Digest, IdOf, OrNull, Time, time } from '#libs/runtime/resource.js'

/*
 * A message and the parsed mail in it, declared once. The types, the schema in the OpenAPI document, the JSON that the API,
 * event streams and webhooks send, and the check of stored mail (`json/message-json.ts`) are derived from that.
 */

const Mailbox = Type.Object(
  {
    name: OrNull(Type.String(), 'The display name.'),
    address: Type.String({ description: 'The address, as written.' }),
  },
  { $id: 'Mailbox', description: 'A name and address in a header.' },
)
export type Mailbox = Static<typeof Mailbox>

const Link = Type.Object(
  {
    href: Type.String({ description: 'Its target URL, http or https.' }),
    text: OrNull(Type.String(), 'The visible text; null for a bare URL.'),
  },
  { $id: 'Link', description: 'A link, form or bare URL in a mail.' },
)
export type Link = Static<typeof Link>

const Code = Type.Object(
  {
    value: Type.String({ description: 'The code as a user types it.' }),
    text: Type.String({ description: 'The code as written in the mail.' }),
    confidence: Type.Number({ minimum: 0, maximum: 1, description: 'How likely it is a one-time code.' }),
  },
  { $id: 'Code', description: 'A one-time code in a mail.' },
)
export type OneTimeCode = Static<typeof Code>

const attachment = object(
  {
    index: Count('Its number in the path of its content, from 0.'),
    filename: OrNull(Type.String(), 'The file name that the sender declared.'),
    contentType: Type.String({ description: 'The media type that the sender declared.' }),
    size: Count('The decoded size in bytes.'),
    contentId: OrNull(Type.String(), 'The id that `cid:` links in the HTML refer to.'),
    isInline: named('inline', Type.Boolean({ description: 'Whether it is to be shown within the mail.' })),
    sha256: Digest('SHA-256 of the decoded bytes.'),
  },
  { $id: 'Attachment', description: 'An attachment of a mail.' },
)
export type Attachment = ValueOf<typeof attachment>

export const Header = Type.Object(
  {
    name: Type.String({ description: 'The name as written.' }),
    value: Type.String({ description: 'The value, decoded and unfolded.' }),
  },
  { $id: 'Header', description: 'A header of a mail.' },
)
export type Header = Static<typeof Header>

const trace = object(
  {
    mailFrom: Type.String({ description: 'The address in MAIL FROM; empty for the null reverse-path.' }),
    rcptTo: Type.String({ description: 'The RCPT TO address of this copy.' }),
    helo: Type.String({ description: "The client's EHLO or HELO." }),
    remoteAddress: Type.String({ description: "The client's IP address." }),
    tls: OrNull(
      Type.Object({ version: Type.String(), cipher: Type.String() }),
      'Null for an unencrypted connection.',
    ),
  },
  { $id: 'Envelope', description: 'The SMTP envelope of a mail.' },
)

/** What is stored of a mail beside its source: the trace that other SMTP servers would write into Received headers. */
export interface Envelope extends ValueOf<typeof trace> {
  /** Absent if the mail was not verified. Stored, because later DNS queries could give other results. */
  authentication?: Authentication
  /** Present if the mail was put in by the HTTP API. */
  injected?: true
  /** The message that this one repeats on purpose. */
  duplicateOf?: ValuesOf<typeof MESSAGE>['id']
}

const result = Type.Enum(
  ['none', 'neutral', 'pass', 'fail', 'softfail', 'policy', 'temperror', 'permerror'],
  { description: 'The result as in RFC 8601, section 2.7.' },
)
const detail = OrNull(Type.String(), 'Details of the result; null if there are none.')

const Authentication = Type.Object(
  {
    spf: OrNull(
      Type.Object({
        result,
        domain: OrNull(Type.String(), 'The domain of MAIL FROM, or of EHLO if MAIL FROM is empty.'),
        detail,
      }),
      'Null if it was not verified.',
    ),
    dkim: Type.Array(
      Type.Object({
        result,
        domain: OrNull(Type.String(), 'The domain that signed.'),
        selector: OrNull(Type.String(), 'The selector of the key.'),
        algorithm: OrNull(Type.String(), 'The algorithm of the signature.'),
        aligned: Type.Boolean({
          description: 'Whether the domain that signed is aligned with the author, as in DMARC.',
        }),
        detail,
      }),
      { description: 'One result for each signature.' },
    ),
    dmarc: OrNull(
      Type.Object({
        result,
        domain: OrNull(Type.String(), 'The domain of the author.'),
        policy: OrNull(Type.Enum(['none', 'quarantine', 'reject']), 'The policy of the domain.'),
        detail,
      }),
      'Null if it was not verified, or the mail has no author.',
    ),
    arc: Type.Optional(
      Type.Object(
        { result, instances: Count('The length of the chain.'), detail },
        { description: 'Only for a mail with a chain of ARC headers.' },
      ),
    ),
  },
  {
    $id: 'Authentication',
    description:
      'Whether a mail is from its declared sender, as verified when it was received: SPF, DKIM, DMARC, ARC.',
  },
)
/** The results of verifying a mail's sender: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 9989), ARC (RFC 8617). */
export type Authentication = Static<typeof Authentication>
export type AuthenticationResult = Static<typeof result>

const Warning = Type.Object(
  {
    code: Type.Unsafe<WarningCode>(
      Type.String({ pattern: '^[a-z-]+$', description: 'The kind of the warning, for programs.' }),
    ),
    detail: Type.String({ description: 'The warning, for people.' }),
  },
  { $id: 'Warning', description: 'A part of a mail that could not be read.' },
)
export type Warning = Static<typeof Warning>

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

/** The properties of a message, without its source. */
export const MESSAGE = {
  id: IdOf('msg', 'Never changes and is never reused.'),
  inboxId: IdOf('inb', 'The inbox that received it.'),
  receivedAt: time('When it was accepted.'),
  subject: OrNull(Type.String(), 'The decoded subject; null if the mail has none.'),
  sender: Type.String({
    description: "The first From address, or the envelope's MAIL FROM if there is none.",
  }),
  recipient: Type.String({ description: 'The RCPT TO address of this copy.' }),
  recipientDetail: OrNull(
    Type.String(),
    'What follows the first `+` in the local part of `recipient` (RFC 5233); null without one.',
  ),
  from: Type.Array(Mailbox),
  to: Type.Array(Mailbox),
  cc: Type.Array(Mailbox),
  replyTo: Type.Array(Mailbox),
  date: OrNull(Time(''), 'The Date header, in UTC; null if missing or unreadable.'),
  text: OrNull(Type.String(), 'The text part; null if the mail has none.'),
  html: OrNull(Type.String(), 'The HTML part; null if the mail has none.'),
  htmlText: named(
    'visible_text',
    OrNull(
      Type.String(),
      'The visible text of `html`, which the filter `text` also searches; null without `html`.',
    ),
  ),
  links: Type.Array(Link, {
    description: "From the HTML's anchors, areas and forms, then the text, in order, without repeats.",
  }),
  codes: Type.Array(Code, { description: 'One-time codes, the most likely first.' }),
  attachments: list(attachment),
  headers: Type.Array(Header, { description: 'All headers in their order, including repeated ones.' }),
  envelope: trace,
  authentication: Authentication,
  size: Count('The size of the source in bytes.'),
  sha256: Digest('SHA-256 of the source.'),
  rawUrl: Type.String({ pattern: '^/v1/', description: 'The path of the source.' }),
  warnings: Type.Array(Warning, { description: 'Empty if the whole mail could be read.' }),
  injected: optional(
    Type.Boolean({ description: 'True in a message that was put in by the API, without SMTP.' }),
    undefined,
  ),
  duplicateOf: optional(IdOf('msg', 'Only in a message that a fault repeated: the original.'), undefined),
}

type Message = ValuesOf<typeof MESSAGE>
type MessageOnly = 'id' | 'inboxId' | 'receivedAt' | 'rawUrl'
type InEnvelope = 'envelope' | 'authentication' | 'injected' | 'duplicateOf'

/** A parsed mail: every property of a message that is computed from its source and envelope. */
export interface ParsedMail extends Omit<Message, MessageOnly | InEnvelope> {
  envelope: Envelope
}

/** The mail in examples and in the samples that webhooks send. */
export const EXAMPLE_MAIL: ParsedMail = {
  subject: 'Your code is 493201',
  sender: 'no-reply@app.example',
  recipient: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
  recipientDetail: null,
  from: [{ name: 'App', address: 'no-reply@app.example' }],
  to: [{ name: null, address: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test' }],
  cc: [],
  replyTo: [],
  date: '2026-11-21T09:30:01.000Z',
  text: 'Your code is 493-201, or follow https://app.example/verify?t=1\n',
  html: null,
  htmlText: null,
  links: [{ href: 'https://app.example/verify?t=1', text: null }],
  codes: [{ value: '493201', text: '493-201', confidence: 0.98 }],
  attachments: [],
  headers: [{ name: 'Subject', value: 'Your code is 493201' }],
  envelope: {
    mailFrom: 'no-reply@app.example',
    rcptTo: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
    helo: 'app.example',
    remoteAddress: '192.0.2.7',
    tls: null,
  },
  size: 187,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  warnings: [],
}
