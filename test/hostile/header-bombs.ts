import { CRLF, numbered, type Bomb } from './bomb.js'

function header(name: string, unit: (number: number) => string, start = '', end = ''): Bomb {
  return (bytes) => {
    const value = start + numbered(bytes, unit) + end
    return Buffer.from(`From: a@example.com${CRLF}${name}: ${value}${CRLF}${CRLF}Hello.${CRLF}`, 'latin1')
  }
}

/** Bombs with one expensive header field. */
export const HEADER_BOMBS: Readonly<Record<string, Bomb>> = {
  'a long Subject': header('Subject', () => 'word '),
  'a Subject of one word': header('Subject', () => 'x'),
  'a folded Subject': header('Subject', () => `${CRLF} x`),
  'a Subject of blanks': header('Subject', () => '          ', 'x', 'x'),
  'a Subject of encoded words': header('Subject', () => '=?utf-8?Q?=C3=A4?= '),
  'a Subject of words cut in characters': header('Subject', (n) =>
    n % 2 === 0 ? '=?utf-8?B?4oI=?= ' : '=?utf-8?B?rA==?= ',
  ),
  'a Subject of broken words': header('Subject', () => '=?utf-8?Q?'),
  'a Subject of words in many charsets': header(
    'Subject',
    (n) => `=?${['utf-7', 'iso-2022-jp', 'gb18030', 'x-no'][n % 4]}?Q?+AOQ-=1B$B?= `,
  ),
  'one encoded word': header('Subject', () => '=41', '=?utf-8?Q?', '?='),
  'many senders': (bytes) =>
    Buffer.from(`From: ${numbered(bytes, (n) => `${n}@b.c, `)}${CRLF}${CRLF}Hello.${CRLF}`),
  'many recipients': header('To', (n) => `${n}@b.c, `),
  'many recipients with names': header('To', (n) => `"=?utf-8?Q?=C3=A4?=" <${n}@b.c>, `),
  'recipients in encoded words': header('To', (n) => `=?utf-8?B?PGFAYi5jPg==?= =?utf-8?B?${n}?=, `),
  'recipients in one encoded word': header('To', () => 'PGFAYi5jPiwg', '=?utf-8?B?', '?='),
  'nested comments': header('To', () => '('),
  'many comments': header('To', () => '(x) '),
  'nested groups': header('To', () => 'g: '),
  'many groups': header('To', (n) => `g${n}: a@b, c@d; `),
  'quotes unclosed': header('To', () => '"a\\" '),
  'an address of an unclosed quote': header('To', () => '\\"', '<"', '>'),
  'angles unclosed': header('To', () => '<a@b '),
  'at signs': header('To', () => '@', 'a'),
  'dots and at signs': header('To', () => 'a.@'),
  'punycode recipients': header('To', (n) => `a@xn--${n}-tda.example, `),
  'a long From': header('From', () => '<a@b>'),
  'many Received': (bytes) =>
    Buffer.from(
      `${numbered(bytes, (n) => `Received: from a${n} by b; Sat, 21 Nov 2026 02:14:41 +0000${CRLF}`)}${CRLF}x`,
    ),
  'a long Received': header('Received', (n) => `from a${n} (b [1.2.3.4]) by c; `),
  'a long References': header('References', (n) => `<${n}@b> `),
  'a long Message-ID': header('Message-ID', () => 'x'),
  'a Date of comments': header('Date', () => '(', 'Sat, 21 Nov 2026 02:14:41 +0000 '),
  'a Date of blanks': header('Date', () => ' ', 'Sat,', '21 Nov 2026'),
  'a Date of digits': header('Date', () => '1'),
  'many parameters': header('Content-Type', (n) => `a${n}=b; `, 'text/plain; '),
  'one parameter often': header('Content-Type', () => `a=b; `, 'text/plain; '),
  'continued parameters': header('Content-Disposition', (n) => `filename*${n}=a;${CRLF} `, 'attachment; '),
  'continued parameters in charsets': header(
    'Content-Disposition',
    (n) => `filename*${n}*=${n === 0 ? "utf-8''" : ''}%C3%A4;${CRLF} `,
    'attachment; ',
  ),
  'parameters backwards': header(
    'Content-Disposition',
    (n) => `filename*${1_000_000 - n}*=%C3;`,
    'attachment; ',
  ),
  'quoted parameters unclosed': header('Content-Type', () => '"a\\";', 'text/plain; name='),
  semicolons: header('Content-Type', () => ';', 'text/plain'),
  'a boundary without end': header('Content-Type', () => 'b', 'multipart/mixed; boundary="', '"'),
}
