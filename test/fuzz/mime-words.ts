import fc from 'fast-check'

/* Pieces of mail sources: valid, unusual and broken. */

export const charset = fc.constantFrom(
  ...['utf-8', 'us-ascii', 'iso-8859-1', 'windows-1252', 'utf-16', 'utf-16le', 'utf-7', 'utf-32', 'gb18030'],
  ...['iso-2022-jp', 'iso-2022-kr', 'shift_jis', 'euc-kr', 'koi8-r', 'big5', 'x-nonsense', '', '"', 'UTF8\0'],
)
export const encoding = fc.constantFrom(
  ...['7bit', '8bit', 'binary', 'base64', 'quoted-printable', 'x-uuencode', 'BASE64 (x)', '', 'base64;'],
)
export const mediaType = fc.constantFrom(
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
export const multipart = fc.constantFrom(
  ...['mixed', 'alternative', 'related', 'signed', 'digest', 'report', 'encrypted', 'parallel', 'x'],
)
export const boundary = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'b', 'ab', 'aa', 'part', '=_1', "'()+_,-./:=?", 'x y', '--', ''),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 80 }) },
)
export const fragment = fc.constantFrom(
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
export const words = fc.array(fragment, { maxLength: 12 }).map((list) => list.join(''))
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
export const eol = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r')
export const otherHeader = fc
  .tuple(headerName, words, eol)
  .map(([name, value, end]) => `${name}: ${value}${end}`)

export const markup = fc.constantFrom(
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
export const html = fc.array(fc.oneof(markup, fragment), { maxLength: 40 }).map((list) => list.join(''))
