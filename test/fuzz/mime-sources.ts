import fc from 'fast-check'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * Sources of mail for the fuzzer: trees of parts whose headers and bodies are sound, odd or broken, and the golden
 * files; then changed here and there, cut, joined, and repeated until a cost that grows too fast shows.
 */

const MAIL = join(process.cwd(), 'libs/mail')

/** Beyond it a repetition adds time and no more insight. */
const MOST_BYTES = 200_000

const charset = fc.constantFrom(
  ...['utf-8', 'us-ascii', 'iso-8859-1', 'windows-1252', 'utf-16', 'utf-16le', 'utf-7', 'utf-32', 'gb18030'],
  ...['iso-2022-jp', 'iso-2022-kr', 'shift_jis', 'euc-kr', 'koi8-r', 'big5', 'x-nonsense', '', '"', 'UTF8\0'],
)
const encoding = fc.constantFrom(
  ...['7bit', '8bit', 'binary', 'base64', 'quoted-printable', 'x-uuencode', 'BASE64 (x)', '', 'base64;'],
)
const mediaType = fc.constantFrom(
  ...['text/plain', 'text/html', 'text/calendar', 'application/pdf', 'image/png', 'message/rfc822'],
  ...[
    'message/delivery-status',
    'message/external-body',
    'application/ms-tnef',
    'text',
    '/',
    'multipart/',
    '',
  ],
)
const multipart = fc.constantFrom(
  ...['mixed', 'alternative', 'related', 'signed', 'digest', 'report', 'encrypted', 'parallel', 'x'],
)
const boundary = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'b', 'ab', 'aa', 'part', '=_1', "'()+_,-./:=?", 'x y', '--', ''),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 80 }) },
)
const fragment = fc.constantFrom(
  ...['=?utf-8?Q?=C3=A4_b?=', '=?utf-8?B?w6Q=?=', '=?utf-8?B?w?=', '=?x?Q?', '?=', '=?utf-7?Q?+AOQ-?='],
  ...['=?iso-2022-jp?B?GyRCJCIbKEI=?=', '=?utf-8*de?Q?a?=', '=?UTF-8?B?PGFAYi5jPg==?='],
  ...[
    'a@b.example',
    '<a@b>',
    '"a\\"b" <c@d>',
    'g: a@b, c@d;',
    '(c (d) e)',
    '"',
    '\\',
    '<',
    '>',
    ',',
    ';',
    ':',
  ],
  ...['a@xn--tda.example', 'ü@ü.example', '@', '.', ' ', '\t', '\r\n ', '\n\t', '\r', '\0', 'é', '\u{1F600}'],
  ...[
    '493201',
    '493-201',
    'Your code is ',
    'G-123456',
    'https://a.example/?b=c&d',
    'http://[::1]/',
    'http://',
  ],
  ...[
    'Sat, 21 Nov 2026 02:14:41 +0000',
    '1',
    'x'.repeat(80),
    "name*0*=utf-8''%C3%A4;",
    'name*1=b;',
    'name=c;',
  ],
)
const words = fc.array(fragment, { maxLength: 12 }).map((list) => list.join(''))
const headerName = fc.constantFrom(
  ...[
    'From',
    'To',
    'Cc',
    'Reply-To',
    'Subject',
    'Date',
    'Message-ID',
    'References',
    'Received',
    'Content-ID',
  ],
  ...[
    'Content-Type',
    'Content-Disposition',
    'Content-Transfer-Encoding',
    'MIME-Version',
    'X',
    '',
    'X ',
    '\u00fc',
  ],
)
const eol = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r')
const otherHeader = fc.tuple(headerName, words, eol).map(([name, value, end]) => `${name}: ${value}${end}`)

const markup = fc.constantFrom(
  ...[
    '<p>',
    '</p>',
    '<br>',
    '<a href="https://a.example/x">',
    '<a href=/y>',
    '</a>',
    '<base href="http://b.c">',
  ],
  ...[
    '<table><tr><td>',
    '</td></tr></table>',
    '<span>4</span>',
    '<pre>',
    '</pre>',
    '<!--',
    '-->',
    '<![CDATA[',
  ],
  ...['<style>', '</style>', '<script>', '<title>', '<template>', '<p hidden>', '<p style="display : none">'],
  ...[
    '<form action="https://f.g">',
    '<button>',
    '</button>',
    '<input type=submit value=Go>',
    '<img alt="x">',
  ],
  ...[
    '<area href="http://h.i" alt=j>',
    '&amp;',
    '&#x1F600;',
    '&#xD800;',
    '&#',
    '&notit;',
    '<',
    '>',
    '"',
    '\u00a0',
  ],
  ...[
    '\u200b',
    '\u202e',
    '4',
    '9 3',
    '123 456',
    'code',
    '\n',
    '  ',
    'www.x.y',
    'https://k.l/m).',
    '<svg>',
    '<math>',
  ],
)
const html = fc.array(fc.oneof(markup, fragment), { maxLength: 40 }).map((list) => list.join(''))

/** One character a byte, as the source is put together. */
function inBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function encoded(body: string, how: string): string {
  const bytes = Buffer.from(body, 'latin1')
  if (how === 'base64') return bytes.toString('base64').replace(/.{76}/g, '$&\r\n')
  if (how !== 'quoted-printable') return body
  return body.replace(
    /[^ -<>-~]/g,
    (byte) => `=${byte.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
  )
}

const body = fc.oneof(
  html.map(inBytes),
  words.map(inBytes),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
)

const leaf = fc
  .record({
    type: mediaType,
    charset,
    encoding,
    isEncoded: fc.boolean(),
    name: words,
    disposition: fc.constantFrom('attachment', 'inline', '', '=?utf-8?Q?attachment?='),
    others: fc.array(otherHeader, { maxLength: 3 }),
    body,
    eol,
  })
  .map(({ type, others, eol, name, disposition, ...part }) => {
    const head = [
      `Content-Type: ${type}; charset=${part.charset}; format=flowed; name="${name}"`,
      `Content-Transfer-Encoding: ${part.encoding}`,
      ...(disposition === '' ? [] : [`Content-Disposition: ${disposition}; filename*=utf-8''${name}`]),
    ].join(eol)
    const content = part.isEncoded ? encoded(part.body, part.encoding) : part.body
    return `${inBytes(others.join('') + head)}${eol}${eol}${content}${eol}`
  })

const { tree } = fc.letrec<{ tree: string; branch: string; wrapped: string }>((tie) => ({
  tree: fc.oneof({ depthSize: 'small', maxDepth: 5 }, leaf, tie('branch'), tie('wrapped')),
  branch: fc
    .record({
      kind: multipart,
      declared: boundary,
      used: fc.option(boundary, { freq: 5, nil: null }),
      children: fc.array(tie('tree'), { maxLength: 4 }),
      isClosed: fc.boolean(),
      around: fc.constantFrom('', 'preamble\r\n', '--', '\r\n\r\n'),
      eol,
    })
    .map(({ kind, declared, used, children, isClosed, around, eol }) => {
      const line = `--${inBytes(used ?? declared)}`
      const parts = children.map((child) => `${eol}${line}${eol}${child}`).join('')
      const head = inBytes(`Content-Type: multipart/${kind}; boundary="${declared}"${eol}${eol}`)
      return `${head}${around}${parts}${isClosed ? `${eol}${line}--${eol}` : ''}${around}`
    }),
  wrapped: fc
    .tuple(fc.constantFrom('', 'Content-Disposition: inline\r\n'), tie('tree'))
    .map(([head, child]) => `${head}Content-Type: message/rfc822\r\n\r\n${child}`),
}))

const built = fc
  .tuple(fc.array(otherHeader, { maxLength: 6 }), tree)
  .map(([headers, rest]) => Buffer.from(inBytes(headers.join('')) + rest, 'latin1'))

const golden = readdirSync(MAIL, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(join(MAIL, name)))

const position = fc.double({ min: 0, max: 1, noNaN: true })

type Change = (source: Buffer) => Buffer

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(position, fc.nat(255)).map(([at, byte]): Change => (source) => {
    const changed = Buffer.from(source)
    if (changed.length > 0) changed[indexIn(changed, at)] = byte
    return changed
  }),
  fc.tuple(position, position).map(([from, to]): Change => (source) => {
    const [start, end] = rangeIn(source, from, to)
    return Buffer.concat([source.subarray(0, start), source.subarray(end)])
  }),
  fc.tuple(position, fc.oneof(fragment, markup)).map(([at, piece]): Change => (source) => {
    const index = indexIn(source, at)
    return Buffer.concat([source.subarray(0, index), Buffer.from(piece), source.subarray(index)])
  }),
  fc.tuple(position, fc.constantFrom(...golden), position).map(([at, other, from]): Change => (source) => {
    const index = indexIn(source, at)
    return Buffer.concat([source.subarray(0, index), other.subarray(indexIn(other, from))])
  }),
)

/** A short piece said again and again: what takes more than linear time shows itself. */
const repetition: fc.Arbitrary<Change> = fc
  .tuple(position, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: MOST_BYTES }))
  .map(([at, length, bytes]): Change => (source) => {
    const start = indexIn(source, at)
    const piece = source.subarray(start, start + length)
    if (piece.length === 0) return source
    const times = Math.ceil(bytes / piece.length)
    return Buffer.concat([
      source.subarray(0, start),
      Buffer.alloc(times * piece.length, piece),
      source.subarray(start),
    ])
  })

/** Any source, from bytes without sense to mail that a program might send. */
export const anySource: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.oneof(
      { weight: 6, arbitrary: built },
      { weight: 3, arbitrary: fc.constantFrom(...golden) },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)) },
    ),
    fc.array(change, { maxLength: 6 }),
    fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: repetition }),
    fc.array(change, { maxLength: 2 }),
  )
  .map(([source, before, repeat, after]) =>
    [...before, ...(repeat === null ? [] : [repeat]), ...after].reduce<Buffer>(
      (changed, each) => each(changed),
      source,
    ),
  )

function indexIn(source: Buffer, at: number): number {
  return Math.min(Math.floor(at * source.length), Math.max(source.length - 1, 0))
}

function rangeIn(source: Buffer, one: number, other: number): [number, number] {
  const [from, to] = [indexIn(source, one), indexIn(source, other)]
  return [Math.min(from, to), Math.max(from, to)]
}
