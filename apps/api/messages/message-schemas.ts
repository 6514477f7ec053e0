import Type from 'typebox'
import { Count, Digest, IdOf, OrNull, Time } from '../openapi/describe.js'

const Mailbox = Type.Object(
  {
    name: OrNull(Type.String(), 'The display name.'),
    address: Type.String({ description: 'The address, as written.' }),
  },
  { $id: 'Mailbox', description: 'A name and address in a header.' },
)

const Link = Type.Object(
  {
    href: Type.String({ description: 'Its target URL, http or https.' }),
    text: OrNull(Type.String(), 'The visible text; null for a bare URL.'),
  },
  { $id: 'Link', description: 'A link, form or bare URL in a mail.' },
)

const Code = Type.Object(
  {
    value: Type.String({ description: 'The code as a user types it.' }),
    text: Type.String({ description: 'The code as written in the mail.' }),
    confidence: Type.Number({ minimum: 0, maximum: 1, description: 'How likely it is a one-time code.' }),
  },
  { $id: 'Code', description: 'A one-time code in a mail.' },
)

const Extracted = Type.Object(
  {
    text: Type.String({ description: 'The match.' }),
    groups: Type.Array(OrNull(Type.String(), 'Null for a group that is not part of the match.'), {
      description: 'What the capturing groups matched, also the named ones, in their order.',
    }),
  },
  { $id: 'Extracted', description: 'A match of the expression `extract` in a mail.' },
)

const Attachment = Type.Object(
  {
    index: Count('Its number in the path of its content, from 0.'),
    filename: OrNull(Type.String(), 'The file name that the sender declared.'),
    content_type: Type.String({ description: 'The media type that the sender declared.' }),
    size: Count('The decoded size in bytes.'),
    content_id: OrNull(Type.String(), 'The id that `cid:` links in the HTML refer to.'),
    inline: Type.Boolean({ description: 'Whether it is to be shown within the mail.' }),
    sha256: Digest('SHA-256 of the decoded bytes.'),
  },
  { $id: 'Attachment', description: 'An attachment of a mail.' },
)

export const Header = Type.Object(
  {
    name: Type.String({ description: 'The name as written.' }),
    value: Type.String({ description: 'The value, decoded and unfolded.' }),
  },
  { $id: 'Header', description: 'A header of a mail.' },
)

const Tls = Type.Object({ version: Type.String(), cipher: Type.String() })

const Envelope = Type.Object(
  {
    mail_from: Type.String({ description: 'The address in MAIL FROM; empty for the null reverse-path.' }),
    rcpt_to: Type.String({ description: 'The RCPT TO address of this copy.' }),
    helo: Type.String({ description: "The client's EHLO or HELO." }),
    remote_address: Type.String({ description: "The client's IP address." }),
    tls: OrNull(Tls, 'Null for an unencrypted connection.'),
  },
  { $id: 'Envelope', description: 'The SMTP envelope of a mail.' },
)

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

const Warning = Type.Object(
  {
    code: Type.String({ pattern: '^[a-z-]+$', description: 'The kind of the warning, for programs.' }),
    detail: Type.String({ description: 'The warning, for people.' }),
  },
  { $id: 'Warning', description: 'A part of a mail that could not be read.' },
)

const id = IdOf('msg', 'Never changes and is never reused.')

export const MESSAGE_PROPERTIES = {
  id,
  inbox_id: IdOf('inb', 'The inbox that received it.'),
  received_at: Time('When it was accepted.'),
  subject: OrNull(Type.String(), 'The decoded subject; null if the mail has none.'),
  sender: Type.String({
    description: "The first From address, or the envelope's MAIL FROM if there is none.",
  }),
  recipient: Type.String({ description: 'The RCPT TO address of this copy.' }),
  from: Type.Array(Mailbox),
  to: Type.Array(Mailbox),
  cc: Type.Array(Mailbox),
  reply_to: Type.Array(Mailbox),
  date: OrNull(Time(''), 'The Date header, in UTC; null if missing or unreadable.'),
  text: OrNull(Type.String(), 'The text part; null if the mail has none.'),
  html: OrNull(Type.String(), 'The HTML part; null if the mail has none.'),
  visible_text: OrNull(
    Type.String(),
    'The visible text of `html`, which the filter `text` also searches; null without `html`.',
  ),
  links: Type.Array(Link, {
    description: "From the HTML's anchors, areas and forms, then the text, in order, without repeats.",
  }),
  codes: Type.Array(Code, { description: 'One-time codes, the most likely first.' }),
  attachments: Type.Array(Attachment),
  headers: Type.Array(Header, { description: 'All headers in their order, including repeated ones.' }),
  envelope: Envelope,
  authentication: Authentication,
  size: Count('The size of the source in bytes.'),
  sha256: Digest('SHA-256 of the source.'),
  raw_url: Type.String({ pattern: '^/v1/', description: 'The path of the source.' }),
  warnings: Type.Array(Warning, { description: 'Empty if the whole mail could be read.' }),
  injected: Type.Optional(
    Type.Boolean({ description: 'True in a message that was put in by the API, without SMTP.' }),
  ),
  duplicate_of: Type.Optional(IdOf('msg', 'Only in a message that a fault repeated: the original.')),
}

const extracted = Type.Optional(
  Type.Array(Extracted, {
    maxItems: 100,
    description:
      'Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At most ' +
      '100 matches, with 65,536 characters in all.',
  }),
)

const example = {
  id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
  inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
  received_at: '2026-11-21T09:30:02.417Z',
  subject: 'Your code is 493201',
  sender: 'no-reply@app.example',
  recipient: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
  from: [{ name: 'App', address: 'no-reply@app.example' }],
  to: [{ name: null, address: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test' }],
  cc: [],
  reply_to: [],
  date: '2026-11-21T09:30:01.000Z',
  text: 'Your code is 493-201, or follow https://app.example/verify?t=1\n',
  html: null,
  visible_text: null,
  links: [{ href: 'https://app.example/verify?t=1', text: null }],
  codes: [{ value: '493201', text: '493-201', confidence: 0.98 }],
  attachments: [],
  headers: [{ name: 'Subject', value: 'Your code is 493201' }],
  envelope: {
    mail_from: 'no-reply@app.example',
    rcpt_to: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
    helo: 'app.example',
    remote_address: '192.0.2.7',
    tls: null,
  },
  authentication: { spf: null, dkim: [], dmarc: null },
  size: 187,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  raw_url: '/v1/inboxes/inb_01jd6b8w0mf2ja3yz5c7e9g1hk/messages/msg_01jd6b90cxf2jb8yqv4t6m2n0p/raw',
  warnings: [],
}

/** A message without its source. */
export const Message = Type.Object(
  { ...MESSAGE_PROPERTIES, extracted },
  {
    $id: 'Message',
    description: 'A received mail, parsed. Parts that it does not have are null or empty.',
    examples: [example],
  },
)

/** The answer to a wait for a number of messages. */
export const MessageCount = Type.Object(
  {
    count: Count('The number of messages that the inboxes of the label have received.'),
    inboxes: Count('The number of inboxes.'),
    cursor: Type.String({
      description:
        'A position before all messages that arrive later. One that arrived while counting may be counted and also be behind it.',
    }),
  },
  { $id: 'MessageCount', description: 'The messages of a label.' },
)

/** A message by id. */
export const MessageWithRaw = Type.Object(
  {
    ...MESSAGE_PROPERTIES,
    extracted,
    raw: Type.Optional(Type.String({ description: 'The whole source; absent with `raw=false`.' })),
    raw_encoding: Type.Optional(
      Type.Union([Type.Literal('utf-8'), Type.Literal('base64')], {
        description: '`base64` if the source is not valid UTF-8. Absent with `raw=false`.',
      }),
    ),
  },
  {
    $id: 'MessageWithRaw',
    description: 'A message, with its source unless `raw=false`.',
    examples: [{ ...example, raw: 'Subject: Your code is 493201\r\n\r\n…', raw_encoding: 'utf-8' }],
  },
)

/** The answer to a deletion. */
export const DeletedMessage = Type.Object(
  { id, deleted_at: Time('When it was deleted. The same in the answer to a repeat.') },
  {
    $id: 'DeletedMessage',
    description: 'A message that was deleted.',
    examples: [{ id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p', deleted_at: '2026-11-21T09:38:10.004Z' }],
  },
)
