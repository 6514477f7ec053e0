import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { anyEnvelope } from '#test/harness/envelope.js'
import { DEFAULT_MAIL_LIMITS, type MailLimits } from './limits.js'
import type { ParsedMail } from './message.js'
import { readAttachment } from './mime/mime.js'
import { parseMail } from './parse.js'

const golden = 'libs/mail/golden'
const source = (name: string): Buffer => readFileSync(`${golden}/${name}.eml`)
const names = readdirSync(golden).flatMap((file) => /^(.*)\.eml$/.exec(file)?.[1] ?? [])
const parse = (raw: Buffer | string, limits?: Partial<MailLimits>) =>
  parseMail(Buffer.from(raw), anyEnvelope, { ...DEFAULT_MAIL_LIMITS, ...limits })

test('an attached mail is an attachment, with its whole source', () => {
  const { attachments } = parse(source('attached-message'))
  expect(attachments).toMatchObject([{ contentType: 'message/rfc822', isInline: true }])
  const inner = readAttachment(source('attached-message'), 0)
  expect(inner?.content.toString()).toMatch(/^From: inner@app.example\r\n[^]*Inner text\r\n--inner--$/)
})

test('the content of an attachment is unchanged', async () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 256))
  const transport = createTransport({ streamTransport: true, buffer: true })
  const { message } = await transport.sendMail({
    from: 'a@app.example',
    attachments: [{ filename: 'ä.bin', content }],
  })
  if (!Buffer.isBuffer(message)) throw new Error('nodemailer returned a stream')
  const read = readAttachment(message, 0)
  expect(read?.meta).toMatchObject({ filename: 'ä.bin', size: content.length })
  expect(read?.content.equals(content)).toBe(true)
})

test('half surrogate pairs, which some charsets can encode, are replaced', () => {
  const half = (text: string) => Buffer.from(text, 'utf16le').toString('base64')
  const part = [
    'Content-Type: text/plain; charset=utf-16le',
    'Content-Transfer-Encoding: base64',
    '',
    half('1\ud83d2'),
    '',
  ]
  const file = [
    'Content-Type: image/png',
    "Content-Disposition: attachment; filename*=utf-16le''%3d%d8",
    '',
    'x',
    '',
  ]
  const word = `=?utf-16le?B?${half('\ud83d')}?=`
  const mail = [
    `Subject: ${word}`,
    `From: ${word} <a@app.example>`,
    'Content-Type: multipart/mixed; boundary=m',
    '',
    ...['--m', ...part, '--m', ...part.with(0, 'Content-Type: text/html; charset=utf-16le'), '--m', ...file],
    '--m--',
  ]
  const parsed = parse(mail.join('\n'))
  expect(parsed).toMatchObject({ subject: '\ufffd', text: '1\ufffd2', html: '1\ufffd2' })
  expect(parsed.attachments).toHaveLength(1)
  expect(JSON.stringify(parsed)).not.toMatch(/\\ud[89a-f]/)
})

const many = (count: number, piece: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => piece(index)).join('')
const multipart = (body: string) => `Content-Type: multipart/mixed; boundary=m\n\n${body}--m--\n`
const attached = many(30, (index) => `--m\nContent-Type: image/png\n\n${index}\n`)

const aboveLimits: {
  send: string
  limits: Partial<MailLimits>
  warning: string
  kept: Partial<ParsedMail>
}[] = [
  {
    send: `${many(9, (index) => `X: ${index}\n`)}\nHi\n`,
    limits: { maxHeaders: 2 },
    warning: 'too-many-headers',
    kept: {
      headers: [
        { name: 'X', value: '0' },
        { name: 'X', value: '1' },
      ],
      text: 'Hi\n',
    },
  },
  {
    send: `X: 0\nY: ${'y'.repeat(99)}\n\nHi\n`,
    limits: { maxHeaderBytes: 50 },
    warning: 'too-many-headers',
    kept: { headers: [{ name: 'X', value: '0' }], text: 'Hi\n' },
  },
  {
    send: `To: ${many(9, (index) => `a${index}@x.test, `)}\nTo: z@x.test\nCc: c@x.test\n\n`,
    limits: { maxMailboxes: 2 },
    warning: 'too-many-addresses',
    kept: {
      to: [
        { name: null, address: 'a0@x.test' },
        { name: null, address: 'a1@x.test' },
      ],
      cc: [{ name: null, address: 'c@x.test' }],
    },
  },
  {
    send: multipart(many(9, (index) => `--m\n\n${index}\n`)),
    limits: { maxParts: 3 },
    warning: 'too-many-parts',
    kept: { text: '0\n1' },
  },
  {
    send: multipart(`--m\nContent-Type: multipart/mixed; boundary=n\n\n--n\n\ndeep\n--n--\n--m\n\nflat\n`),
    limits: { maxDepth: 1 },
    warning: 'too-many-parts',
    kept: { text: 'flat' },
  },
  {
    send: multipart(`--m\nX: ${'x'.repeat(99)}\nContent-Type: text/html\n\n<p>\n`),
    limits: { maxHeaderBytes: 60 },
    warning: 'too-many-headers',
    kept: { text: '<p>', html: null },
  },
  {
    send: `\n${many(9, (index) => `https://app.example/${index}\n`)}`,
    limits: { maxLinks: 1 },
    warning: 'too-many-links',
    kept: { links: [{ href: 'https://app.example/0', text: null }] },
  },
  {
    send: 'Content-Type: text/plain; charset=utf-8\n\naaäöü',
    limits: { maxTextBytes: 5 },
    warning: 'text-truncated',
    kept: { text: 'aaä' },
  },
  {
    send: 'Content-Type: text/plain; charset=utf-8\n\na\0b"c\\d',
    limits: { maxTextBytes: 11 },
    warning: 'text-truncated',
    kept: { text: 'a\0b"c' },
  },
  {
    send: 'Content-Type: text/html\n\n<p>Hello</p>',
    limits: { maxHtmlBytes: 5 },
    warning: 'html-truncated',
    kept: { html: '<p>He' },
  },
  {
    send: multipart(attached),
    limits: { maxAttachments: 0 },
    warning: 'too-many-attachments',
    kept: { attachments: [] },
  },
]

test.each(aboveLimits)('above a limit: $warning with $limits', ({ send, limits, warning, kept }) => {
  const mail = parse(send, limits)
  expect(mail).toMatchObject(kept)
  expect(mail.warnings.map(({ code }) => code)).toEqual([warning])
  expect(parse(send).warnings).toEqual([])
})

test('line breaks are LF at any position of a long text, and a lone CR is kept', () => {
  for (let length = 65_533; length <= 65_537; length += 1) {
    const long = 'x'.repeat(length)
    expect(parse(`\n${long}\r\ny\r\r\n\n\r`).text).toBe(`${long}\ny\r\n\n\r`)
  }
})

test('attachments above the limit are neither listed nor read', () => {
  const limits = { ...DEFAULT_MAIL_LIMITS, maxAttachments: 20 }
  const { attachments } = parse(multipart(attached), limits)
  expect(attachments.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, index) => index))
  expect(readAttachment(Buffer.from(multipart(attached)), 19, limits)).toMatchObject({
    content: Buffer.from('19'),
  })
  expect(readAttachment(Buffer.from(multipart(attached)), 20, limits)).toBeNull()
})

test.each(['', 'Content-Type: text/html\n'])(
  'links of more than 8,192 characters are left out: %j',
  (type) => {
    const [longest, tooLong] = ['x'.repeat(8_192 - 20), 'x'.repeat(8_193 - 20)].map(
      (path) => `https://app.example/${path}`,
    )
    const mail = parse(`${type}\n${tooLong} ${longest} https://app.example/`)
    expect(mail.links.map(({ href }) => href)).toEqual([longest, 'https://app.example/'])
    expect(mail.warnings).toEqual([
      {
        code: 'too-many-links',
        detail: 'Only the first 1000 links are listed, none longer than 8192 characters.',
      },
    ])
  },
)

test('a mail with thousands of parts is read up to the limit', () => {
  const mail = parse(multipart(many(5_000, () => '--m\n\nx\n')))
  expect(mail.warnings.map(({ code }) => code)).toEqual(['too-many-parts'])
  expect(mail.text).toHaveLength(2 * (DEFAULT_MAIL_LIMITS.maxParts - 1) - 1)
})

const pieces = fc.constantFrom(
  ...[
    'From: a@b\n',
    'Content-Type: multipart/mixed; boundary=m\n',
    'Content-Type: text/html\n',
    '\n',
    '--m\n',
    '--m--\n',
  ],
  ...[
    'Content-Type: message/rfc822\n',
    'Content-Transfer-Encoding: base64\n',
    'Content-Disposition: attachment\n',
    'x=\n',
  ],
  ...[
    'Content-Type: text/plain; charset=utf-16\n',
    'Content-Type: text/plain; charset=nonsense\n',
    '=?utf-8?B?////?=',
    '\r',
  ],
  ...[
    'Content-Transfer-Encoding: quoted-printable\n',
    'Subject:',
    ':',
    '<a href=https://x.y>',
    'format=flowed',
    'Date: 1\n',
  ],
  ...[
    'Content-Type: text/plain; charset=iso-2022-jp; format=flowed\n',
    'Content-Type: text/plain; charset=utf-7\n',
    '\0',
    'ü',
  ],
)
const anySource = fc.oneof(
  fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
  fc.array(pieces, { maxLength: 60 }).map((list) => Buffer.from(list.join(''))),
  fc.tuple(fc.constantFrom(...names), fc.nat(), fc.nat(255), fc.nat()).map(([name, at, byte, end]) => {
    const raw = source(name)
    if (raw.length > 0) raw[at % raw.length] = byte
    return raw.subarray(0, end % (raw.length + 1))
  }),
)

test('any bytes are parsed', () => {
  fc.assert(
    fc.property(anySource, (raw) => {
      expect(parse(raw)).toMatchObject({ size: raw.length, recipient: anyEnvelope.rcptTo })
    }),
    { numRuns: 1_500 },
  )
})
