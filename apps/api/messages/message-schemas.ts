import Type from 'typebox'
import { Count, Digest, IdOf, OrNull, Time } from '../openapi/describe.js'

const Mailbox = Type.Object(
  {
    name: OrNull(Type.String(), 'The display name.'),
    address: Type.String({ description: 'The address, as written.' }),
  },
  { $id: 'Mailbox', description: 'Somebody named in an address header.' },
)

const Link = Type.Object(
  {
    href: Type.String({ description: 'Its target, http or https.' }),
    text: OrNull(Type.String(), 'What a reader sees; null for a bare URL.'),
  },
  { $id: 'Link', description: 'A link, form or bare URL of a mail.' },
)

const Code = Type.Object(
  {
    value: Type.String({ description: 'What a user types.' }),
    text: Type.String({ description: 'The code as written in the mail.' }),
    confidence: Type.Number({ minimum: 0, maximum: 1, description: 'How sure it is to be a code.' }),
  },
  { $id: 'Code', description: 'A one-time code of a mail.' },
)

const Attachment = Type.Object(
  {
    index: Count('Its number in the path of its content, from 0.'),
    filename: OrNull(Type.String(), 'As the sender has it.'),
    content_type: Type.String({ description: 'As the sender has it.' }),
    size: Count('Bytes once decoded.'),
    content_id: OrNull(Type.String(), 'What `cid:` links of the HTML name.'),
    inline: Type.Boolean({ description: 'Whether it is meant to be shown within the mail.' }),
    sha256: Digest('Of the decoded bytes.'),
  },
  { $id: 'Attachment', description: 'A file that a mail carries.' },
)

export const Header = Type.Object(
  {
    name: Type.String({ description: 'As it stands.' }),
    value: Type.String({ description: 'Decoded and unfolded.' }),
  },
  { $id: 'Header', description: 'A header of a mail.' },
)

const Tls = Type.Object({ version: Type.String(), cipher: Type.String() })

const Envelope = Type.Object(
  {
    mail_from: Type.String({ description: 'MAIL FROM; empty for the null reverse-path.' }),
    rcpt_to: Type.String({ description: 'The RCPT TO which this copy came by.' }),
    helo: Type.String({ description: "The client's EHLO or HELO." }),
    remote_address: Type.String({ description: "The client's IP address." }),
    tls: OrNull(Tls, 'Null for a connection in the clear.'),
  },
  { $id: 'Envelope', description: 'What SMTP knew of a mail.' },
)

const result = Type.Enum(
  ['none', 'neutral', 'pass', 'fail', 'softfail', 'policy', 'temperror', 'permerror'],
  { description: 'As RFC 8601, section 2.7, has it.' },
)
const detail = OrNull(Type.String(), 'More about the result, if there is any.')

const Authentication = Type.Object(
  {
    spf: OrNull(
      Type.Object({ result, domain: OrNull(Type.String(), 'Of MAIL FROM, else of EHLO.'), detail }),
      'Null if it was not verified.',
    ),
    dkim: Type.Array(
      Type.Object({
        result,
        domain: OrNull(Type.String(), 'Who signed.'),
        selector: OrNull(Type.String(), 'Of the key.'),
        algorithm: OrNull(Type.String(), 'Of the signature.'),
        aligned: Type.Boolean({ description: 'Whether the signer is the author, as DMARC has it.' }),
        detail,
      }),
      { description: 'One for each signature.' },
    ),
    dmarc: OrNull(
      Type.Object({
        result,
        domain: OrNull(Type.String(), 'Of the author.'),
        policy: OrNull(Type.Enum(['none', 'quarantine', 'reject']), 'What the domain asks for.'),
        detail,
      }),
      'Null if it was not verified, or the mail names no author.',
    ),
    arc: Type.Optional(
      Type.Object(
        { result, instances: Count('Length of the chain.'), detail },
        { description: 'Only of a mail that has a chain of ARC headers.' },
      ),
    ),
  },
  {
    $id: 'Authentication',
    description:
      'Whether a mail is from the sender that it names, as verified on arrival: SPF, DKIM, DMARC, ARC.',
  },
)

const Warning = Type.Object(
  {
    code: Type.String({ pattern: '^[a-z-]+$', description: 'For programs.' }),
    detail: Type.String({ description: 'For people.' }),
  },
  { $id: 'Warning', description: 'What could not be read of a mail.' },
)

const id = IdOf('msg', 'Never changes, and is never used again.')

export const MESSAGE_PROPERTIES = {
  id,
  inbox_id: IdOf('inb', 'The inbox it came to.'),
  received_at: Time('When it was accepted.'),
  subject: OrNull(Type.String(), 'Decoded.'),
  sender: Type.String({ description: "The first From address, else the envelope's MAIL FROM." }),
  recipient: Type.String({ description: 'The RCPT TO which this copy came by.' }),
  from: Type.Array(Mailbox),
  to: Type.Array(Mailbox),
  cc: Type.Array(Mailbox),
  reply_to: Type.Array(Mailbox),
  date: OrNull(Time(''), 'The Date header, in UTC; null if missing or unreadable.'),
  text: OrNull(Type.String(), 'The text part; null if the mail has none.'),
  html: OrNull(Type.String(), 'The HTML part; null if the mail has none.'),
  visible_text: OrNull(
    Type.String(),
    'The text that a reader of `html` sees, which the filter `text` searches too; null without `html`.',
  ),
  links: Type.Array(Link, {
    description: "From the HTML's anchors, areas and forms, then the text, in order, without repeats.",
  }),
  codes: Type.Array(Code, { description: 'One-time codes, best first.' }),
  attachments: Type.Array(Attachment),
  headers: Type.Array(Header, { description: 'In their order, repeats kept.' }),
  envelope: Envelope,
  authentication: Authentication,
  size: Count('Bytes of the source.'),
  sha256: Digest('Of the source.'),
  raw_url: Type.String({ pattern: '^/v1/', description: 'The path of the source.' }),
  warnings: Type.Array(Warning, { description: 'Empty for a mail that could be read as a whole.' }),
}

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
export const Message = Type.Object(MESSAGE_PROPERTIES, {
  $id: 'Message',
  description:
    'A mail that has arrived, parsed. What it does not have is null or empty: nothing is invented.',
  examples: [example],
})

/** A message by id. */
export const MessageWithRaw = Type.Object(
  {
    ...MESSAGE_PROPERTIES,
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
  { id, deleted_at: Time('When it was deleted first.') },
  {
    $id: 'DeletedMessage',
    description: 'The end of a message.',
    examples: [{ id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p', deleted_at: '2026-11-21T09:38:10.004Z' }],
  },
)
