import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { readAttachment } from './attachment.js'
import { defaultMailLimits, type MailLimits } from './limits.js'
import type { Envelope, ParsedMail } from './message.js'
import { parseMail } from './parse.js'

const envelope: Envelope = {
  mailFrom: 'bounce@app.example',
  rcptTo: 'k3v+tag@mayfly.test',
  helo: 'mx.app.example',
  remoteAddress: '192.0.2.1',
  tls: null,
}

const fixtures = 'libs/mail/fixtures'
const source = (name: string): Buffer => readFileSync(`${fixtures}/${name}.eml`)
const parse = (raw: Buffer | string, limits?: Partial<MailLimits>) =>
  parseMail(Buffer.from(raw), envelope, { ...defaultMailLimits, ...limits })

const from = [{ name: 'App', address: 'no-reply@app.example' }]
const link = 'https://app.example/verify?token=abcdefghijklmnopqrstuvwxyz0123456789abcdefghij&utm_source=mail'

const mails: { send: string; expect: Partial<ParsedMail> }[] = [
  {
    send: 'plain-text',
    expect: {
      subject: 'Your code is 493201',
      sender: 'no-reply@app.example',
      recipient: 'k3v+tag@mayfly.test',
      from,
      to: [{ name: null, address: 'k3v@mayfly.test' }],
      cc: [],
      replyTo: [],
      date: '2026-11-21T09:00:00.000Z',
      text: 'Hello,\n\nYour verification code is 493-201.\n\nhttps://app.example/verify?t=abc.\n',
      html: null,
      links: [{ href: 'https://app.example/verify?t=abc', text: null }],
      codes: [{ value: '493201', text: '493-201', confidence: 0.98 }],
      attachments: [],
      envelope,
      warnings: [],
    },
  },
  {
    send: 'html-only',
    expect: {
      text: null,
      links: [{ href: 'https://app.example/v?a=1&utm_source=mail', text: 'Verify now' }],
    },
  },
  {
    send: 'two-parts',
    expect: { text: `Go to ${link} to verify.`, links: [{ href: link, text: 'Verify' }], attachments: [] },
  },
  { send: 'text-beside-html', expect: { text: 'Before\nAfter', html: '<p>Middle</p>', attachments: [] } },
  { send: 'attached-message', expect: { subject: 'Fwd', text: 'See below.', html: null, codes: [] } },
  { send: 'bounce', expect: { text: 'It bounced.', html: null } },
  { send: 'charset-iso-8859-1', expect: { subject: 'Grüße', text: 'Grüße aus Köln' } },
  { send: 'charset-windows-1252', expect: { subject: 'Preis €', text: 'Preis: “5 €”' } },
  { send: 'charset-shift-jis', expect: { subject: '認証コード', text: '認証コードは 493201 です' } },
  { send: 'charset-iso-2022-jp', expect: { subject: '認証コード', text: '認証コードは 493201 です' } },
  { send: 'charset-gb18030', expect: { subject: '验证码', text: '您的验证码是 493201' } },
  { send: 'charset-koi8-r', expect: { subject: 'Код', text: 'Ваш код подтверждения: 493201' } },
  {
    send: 'encoded-subject',
    expect: { subject: 'Grüße 漢 und mehr', from: [{ name: 'Jürgen', address: 'j@app.example' }] },
  },
  {
    send: 'latin1-header',
    expect: { subject: 'Grüße', text: 'Grüße\n', from: [{ name: 'Jürgen', address: 'j@app.example' }] },
  },
  {
    send: 'smtputf8',
    expect: {
      subject: 'Grüße ✓',
      sender: 'jürgen@bücher.example',
      to: [{ name: null, address: '用户@例子.example' }],
      links: [{ href: 'https://bücher.example/weg?x=ü', text: null }],
    },
  },
  { send: 'quoted-printable-8bit', expect: { text: 'Grüße ü 100% a=b  end\n' } },
  { send: 'flowed', expect: { text: 'This line goes on here.\n\nThat one not.' } },
  {
    send: 'empty',
    expect: { subject: null, sender: 'bounce@app.example', date: null, text: null, html: null, headers: [] },
  },
  { send: 'header-only', expect: { subject: 'Nothing more', text: null, html: null } },
  { send: 'no-headers', expect: { headers: [], text: 'Hello without headers\n' } },
  { send: 'just-text', expect: { headers: [], text: 'Hello, this is all\n' } },
  { send: 'no-separator', expect: { subject: 'Hi', text: 'Hello without an empty line\nand 493201\n' } },
  { send: 'nul-bytes', expect: { subject: 'N\0UL', text: 'A\0B\n' } },
  {
    send: 'duplicate-headers',
    expect: {
      subject: 'first',
      sender: 'a@app.example',
      from: [{ name: null, address: 'a@app.example' }],
      headers: [
        { name: 'Received', value: 'one' },
        { name: 'Received', value: 'two' },
        { name: 'X-MIXED-case', value: 'a' },
        { name: 'x-mixed-CASE', value: 'b' },
        { name: 'From', value: 'a@app.example' },
        { name: 'Subject', value: 'first' },
        { name: 'Subject', value: 'second' },
        { name: 'From', value: 'b@app.example' },
        { name: 'received', value: 'three folded' },
      ],
    },
  },
  { send: 'no-from', expect: { sender: 'bounce@app.example', from: [] } },
  {
    send: 'groups',
    expect: {
      sender: 'ann@app.example',
      from: [
        { name: 'Ann', address: 'ann@app.example' },
        { name: null, address: 'bob@app.example' },
      ],
      to: [],
      cc: [
        { name: null, address: 'a@app.example' },
        { name: 'B, C', address: 'b@app.example' },
        { name: 'D', address: 'd@app.example' },
      ],
    },
  },
  {
    send: 'bad-date',
    expect: { date: null, warnings: [{ code: 'invalid-date', detail: 'The Date header names no moment.' }] },
  },
]

test.each(mails)('$send', async ({ send, expect: expected }) => {
  expect(await parse(source(send))).toMatchObject(expected)
})

test.each(readdirSync(fixtures).filter((name) => name.endsWith('.eml')))(
  '%s: size and digest are the source’s',
  async (name) => {
    const raw = readFileSync(`${fixtures}/${name}`)
    const digest = createHash('sha256').update(raw).digest('hex')
    expect(await parse(raw)).toMatchObject({ size: raw.length, sha256: digest })
  },
)

test('attachments are told apart from text, in order, as the mail declares them', async () => {
  const { attachments } = await parse(source('nested'))
  expect(attachments).toMatchObject([
    {
      index: 0,
      filename: 'logo.png',
      contentType: 'image/png',
      size: 18,
      contentId: 'logo@app',
      isInline: true,
    },
    {
      index: 1,
      filename: 'a.pdf',
      contentType: 'application/octet-stream',
      size: 8,
      contentId: null,
      isInline: false,
    },
    { index: 2, filename: 'nötes.txt', contentType: 'text/plain', size: 5, isInline: false },
  ])
})

test('an attached mail is an attachment, whole', async () => {
  const { attachments } = await parse(source('attached-message'))
  expect(attachments).toMatchObject([{ contentType: 'message/rfc822', isInline: true }])
  const inner = await readAttachment(source('attached-message'), 0)
  expect(inner?.content.toString()).toMatch(/^From: inner@app.example\r\n[^]*Inner text\r\n--inner--$/)
})

test.each(['nested', 'attached-message', 'bounce', 'unclosed', 'plain-text'])(
  '%s: each attachment is read by its index, with the digest that was listed',
  async (name) => {
    const raw = source(name)
    const { attachments } = await parse(raw)
    for (const meta of attachments) {
      const read = await readAttachment(raw, meta.index)
      expect(read?.meta).toEqual(meta)
      expect(read?.content).toHaveLength(meta.size)
      expect(
        createHash('sha256')
          .update(read?.content ?? '')
          .digest('hex'),
      ).toBe(meta.sha256)
    }
    expect(await readAttachment(raw, attachments.length)).toBeNull()
    expect(await readAttachment(raw, -1)).toBeNull()
  },
)

test('an attachment comes back byte for byte', async () => {
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919) % 256))
  const transport = createTransport({ streamTransport: true, buffer: true })
  const { message } = await transport.sendMail({
    from: 'a@app.example',
    attachments: [{ filename: 'ä.bin', content }],
  })
  if (!Buffer.isBuffer(message)) throw new Error('nodemailer gave a stream')
  const read = await readAttachment(message, 0)
  expect(read?.meta).toMatchObject({ filename: 'ä.bin', size: content.length })
  expect(read?.content.equals(content)).toBe(true)
})

test('half surrogate pairs, which charsets can say and JSON may not hold, are replaced', async () => {
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
  const parsed = await parse(mail.join('\n'))
  expect(parsed).toMatchObject({ subject: '\ufffd', text: '1\ufffd2', html: '1\ufffd2' })
  expect(parsed.attachments).toHaveLength(1)
  expect(JSON.stringify(parsed)).not.toMatch(/\\ud[89a-f]/)
})

const many = (count: number, piece: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => piece(index)).join('')
const multipart = (body: string) => `Content-Type: multipart/mixed; boundary=m\n\n${body}--m--\n`
const attached = many(30, (index) => `--m\nContent-Type: image/png\n\n${index}\n`)

const overruns: { send: string; limits: Partial<MailLimits>; warning: string; kept: Partial<ParsedMail> }[] =
  [
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

test.each(overruns)('past a limit: $warning with $limits', async ({ send, limits, warning, kept }) => {
  const mail = await parse(send, limits)
  expect(mail).toMatchObject(kept)
  expect(mail.warnings.map(({ code }) => code)).toEqual([warning])
  expect((await parse(send)).warnings).toEqual([])
})

test('attachments past the limit are neither listed nor read', async () => {
  const limits = { ...defaultMailLimits, maxAttachments: 20 }
  const { attachments } = await parse(multipart(attached), limits)
  expect(attachments.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, index) => index))
  expect(await readAttachment(Buffer.from(multipart(attached)), 19, limits)).toMatchObject({
    content: Buffer.from('19'),
  })
  expect(await readAttachment(Buffer.from(multipart(attached)), 20, limits)).toBeNull()
})

test('a mail of many thousand parts is read up to the limit', async () => {
  const mail = await parse(multipart(many(5_000, () => '--m\n\nx\n')))
  expect(mail.warnings.map(({ code }) => code)).toEqual(['too-many-parts'])
  expect(mail.text).toHaveLength(2 * (defaultMailLimits.maxParts - 1) - 1)
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
  fc
    .tuple(fc.constantFrom(...mails.map(({ send }) => send)), fc.nat(), fc.nat(255), fc.nat())
    .map(([name, at, byte, end]) => {
      const raw = source(name)
      if (raw.length > 0) raw[at % raw.length] = byte
      return raw.subarray(0, end % (raw.length + 1))
    }),
)

test('any bytes are read, or refused by an Error', async () => {
  await fc.assert(
    fc.asyncProperty(anySource, async (raw) => {
      const mail = await parse(raw).catch((error: unknown) => error)
      if (mail instanceof Error) return
      expect(mail).toMatchObject({ size: raw.length, recipient: envelope.rcptTo })
    }),
    { numRuns: 1_500 },
  )
})
