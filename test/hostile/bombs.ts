/**
 * Mails made to cost much: each a function from about how many bytes to a source, so that the cost of one may be
 * measured against the cost of another twice as large. Bytes are made when asked for, none are stored.
 */
export type Bomb = (bytes: number) => Buffer

const CRLF = '\r\n'

/** A source of parts, some of which are functions of the bytes that are left for them. */
function sourceOf(head: readonly string[], body: string | Buffer): Buffer {
  const top = ['From: a@example.com', 'To: b@example.com', 'Subject: bomb', ...head, '', ''].join(CRLF)
  return Buffer.concat([Buffer.from(top), typeof body === 'string' ? Buffer.from(body) : body])
}

function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.max(Math.floor(bytes / unit.length), 1))
}

/** A piece that is numbered, so that no two are alike. */
function numbered(bytes: number, unit: (number: number) => string): string {
  const pieces: string[] = []
  for (let [length, number] = [0, 0]; length < bytes; number++) {
    const piece = unit(number)
    pieces.push(piece)
    length += piece.length
  }
  return pieces.join('')
}

function html(unit: (bytes: number) => string, before = '', after = ''): Bomb {
  return (bytes) => sourceOf(['Content-Type: text/html; charset=utf-8'], before + unit(bytes) + after)
}

function repeated(unit: string): (bytes: number) => string {
  return (bytes) => fill(unit, bytes)
}

function text(unit: string, contentType = 'text/plain; charset=utf-8', encoding = '8bit'): Bomb {
  return (bytes) =>
    sourceOf(
      [`Content-Type: ${contentType}`, `Content-Transfer-Encoding: ${encoding}`],
      Buffer.from(fill(unit, bytes), 'latin1'),
    )
}

function header(name: string, unit: (number: number) => string, start = '', end = ''): Bomb {
  return (bytes) => {
    const value = start + numbered(bytes, unit) + end
    return Buffer.from(`From: a@example.com${CRLF}${name}: ${value}${CRLF}${CRLF}Hello.${CRLF}`, 'latin1')
  }
}

function nested(contentType: (level: number) => string, delimiter: (level: number) => string): Bomb {
  return (bytes) => {
    const level = (number: number) => `${delimiter(number)}Content-Type: ${contentType(number)}${CRLF}${CRLF}`
    return sourceOf(
      [`Content-Type: ${contentType(0)}`],
      numbered(bytes, (number) => level(number + 1)),
    )
  }
}

const multipart = 'Content-Type: multipart/mixed; boundary="part"'
const base64Lines = `${'QUJD'.repeat(19)}${CRLF}`

export const BOMBS: Readonly<Record<string, Bomb>> = {
  'multiparts in multiparts': nested(
    (level) => `multipart/mixed; boundary="b${level}"`,
    (level) => `--b${level - 1}${CRLF}`,
  ),
  'mails in mails': nested(
    () => 'message/rfc822',
    () => '',
  ),
  'inline mails in mails': nested(
    () => `message/rfc822${CRLF}Content-Disposition: inline`,
    () => '',
  ),
  'mails in multiparts in mails': nested(
    (level) => (level % 2 === 0 ? `multipart/digest; boundary="b${level}"` : 'message/rfc822'),
    (level) => (level % 2 === 1 ? `--b${level - 1}${CRLF}` : ''),
  ),
  'parts without end': (bytes) => sourceOf([multipart], fill(`--part${CRLF}${CRLF}x${CRLF}`, bytes)),
  'attachments without end': (bytes) =>
    sourceOf([multipart], fill(`--part${CRLF}Content-Disposition: attachment${CRLF}${CRLF}x${CRLF}`, bytes)),
  'empty parts': (bytes) => sourceOf([multipart], fill(`--part${CRLF}`, bytes)),
  'parts with many headers': (bytes) =>
    sourceOf([multipart], fill(`--part${CRLF}${fill(`X: y${CRLF}`, 4_000)}${CRLF}x${CRLF}`, bytes)),
  'a part of headers': (bytes) => sourceOf([multipart], `--part${CRLF}${fill(`X: y${CRLF}`, bytes)}`),
  'a part with one long header': (bytes) =>
    sourceOf([multipart], `--part${CRLF}Content-Type: text/plain; ${fill('a=b; ', bytes)}${CRLF}${CRLF}x`),
  'many headers': (bytes) => Buffer.from(`${fill(`X: y${CRLF}`, bytes)}${CRLF}Hello.`),
  'many empty headers': (bytes) => Buffer.from(`${fill(`:${CRLF}`, bytes)}${CRLF}Hello.`),
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
  'many recipients': header('To', (n) => `${n}@b.c, `),
  'many recipients with names': header('To', (n) => `"=?utf-8?Q?=C3=A4?=" <${n}@b.c>, `),
  'recipients in encoded words': header('To', (n) => `=?utf-8?B?PGFAYi5jPg==?= =?utf-8?B?${n}?=, `),
  'recipients in one encoded word': header('To', () => 'PGFAYi5jPiwg', '=?utf-8?B?', '?='),
  'nested comments': header('To', () => '('),
  'many comments': header('To', () => '(x) '),
  'nested groups': header('To', () => 'g: '),
  'many groups': header('To', (n) => `g${n}: a@b, c@d; `),
  'quotes unclosed': header('To', () => '"a\\" '),
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
  'quoted-printable soft breaks': text(`=${CRLF}`, 'text/plain', 'quoted-printable'),
  'quoted-printable equals': text('=', 'text/plain', 'quoted-printable'),
  'quoted-printable blanks': text(' ', 'text/plain', 'quoted-printable'),
  'quoted-printable of characters': text('=C3=A4', 'text/html; charset=utf-8', 'quoted-printable'),
  'base64 in one line': text('QUJD', 'text/plain', 'base64'),
  'base64 of noise': text('Q=U!J-D\r\n=', 'text/plain', 'base64'),
  'base64 of HTML': text(`PGI+${CRLF}`, 'text/html', 'base64'),
  'an attachment in base64': text(base64Lines, 'application/pdf', 'base64'),
  uuencode: text(`M${'x'.repeat(60)}${CRLF}`, 'text/plain', 'x-uuencode'),
  'UTF-7': text('+AOQ-', 'text/plain; charset=utf-7'),
  'UTF-7 unclosed': text('+', 'text/plain; charset=utf-7'),
  'ISO-2022-JP': text('\x1b$B$"\x1b(B', 'text/plain; charset=iso-2022-jp'),
  'ISO-2022-KR': text('\x0e!!\x0f', 'text/plain; charset=iso-2022-kr'),
  'UTF-16': text('\x20\xac', 'text/plain; charset=utf-16be'),
  'half characters in UTF-16': text('\xd8\x00', 'text/plain; charset=utf-16be'),
  'UTF-32': text('\x00\x01\xf6\x00', 'text/plain; charset=utf-32be'),
  'windows-1252 that grows': text('\x80', 'text/plain; charset=windows-1252'),
  GB18030: text('\x81\x30\x81\x30', 'text/plain; charset=gb18030'),
  Shift_JIS: text('\xb1', 'text/html; charset=shift_jis'),
  'broken UTF-8': text('\xff', 'text/plain; charset=utf-8'),
  flowed: text(`> > > x ${CRLF}`, 'text/plain; format=flowed; delsp=yes'),
  'flowed quotes': text('>', 'text/plain; format=flowed'),
  'flowed blanks': text(` ${CRLF}`, 'text/plain; format=flowed'),
  'delimiters that are none': (bytes) => sourceOf([multipart], fill(`--x${CRLF}`, bytes)),
  'delimiters that begin alike': (bytes) =>
    sourceOf([multipart], fill(`--part${'t'.repeat(70)}${CRLF}`, bytes)),
  'boundaries that begin alike': (bytes) => {
    const declare = (n: number) =>
      `--${'b'.repeat(n)}${CRLF}Content-Type: multipart/mixed; boundary="${'b'.repeat(n + 1)}"${CRLF}${CRLF}`
    const levels = Array.from({ length: 60 }, (_, n) => declare(n + 1)).join('')
    return sourceOf(
      ['Content-Type: multipart/mixed; boundary="b"'],
      levels + numbered(bytes, (n) => `--${'b'.repeat((n % 62) + 1)}${CRLF}`),
    )
  },
  'many declared boundaries': (bytes) =>
    sourceOf(
      [multipart],
      numbered(bytes, (n) => `--part${CRLF}Content-Type: multipart/mixed; boundary=b${n}${CRLF}${CRLF}`),
    ),
  'boundaries declared in the text': (bytes) =>
    sourceOf(
      [multipart],
      numbered(bytes, (n) => `boundary=b${n}${CRLF}--b${n}${CRLF}`),
    ),
  'a boundary like a pattern': (bytes) =>
    sourceOf(
      ['Content-Type: multipart/mixed; boundary="(a+)+$.*[^"'],
      fill(`--(a+)+$.*[^${CRLF}${CRLF}aaaa!${CRLF}`, bytes),
    ),
  'declarations unclosed': (bytes) => sourceOf([multipart], fill(`boundary               =`, bytes)),
  'declarations of blanks': (bytes) => sourceOf([multipart], `--part${CRLF}${fill(' ', bytes)}`),
  'delimiters with blanks': (bytes) =>
    sourceOf([multipart], fill(`--part${' '.repeat(200)}${CRLF}${CRLF}`, bytes)),
  dots: text(`..${CRLF}.${CRLF}`),
  'one line': text('x'),
  'line breaks': text(CRLF),
  'line feeds': text('\n'),
  'carriage returns': text('\r'),
  blanks: text(' '),
  NULs: text('\0'),
  digits: text('1'),
  'digits in words': text('1 '),
  'numbers like codes': text('493201 '),
  'codes with their words': text('Your code is 493201. '),
  'words of codes': text('verification code '),
  'codes in lines': text(`code${CRLF}1${CRLF}`),
  capitals: text('ABCDEF-'),
  hyphens: text('1-'),
  'From lines': text(`From a@b Sat Nov 21${CRLF}`),
  links: (bytes) =>
    sourceOf(
      [],
      numbered(bytes, (n) => `https://example.com/${n} `),
    ),
  'one link': text('https://example.com/?x=', 'text/plain'),
  'a link of brackets': (bytes) => sourceOf([], `https://example.com/${fill('(', bytes)}`),
  'a link of closed brackets': (bytes) => sourceOf([], `https://example.com/${fill('()).', bytes)}`),
  'a link of dots': (bytes) => sourceOf([], `https://example.com/${fill('.', bytes)}`),
  'beginnings of links': text('https://', 'text/plain'),
  'links of labels': (bytes) => sourceOf([], fill('http://xn--a.xn--b.xn--c/ ', bytes)),
  'a link of hosts': (bytes) => sourceOf([], `https://${fill('a.', bytes)}/`),
  'a link with a port of digits': (bytes) => sourceOf([], `https://a:${fill('1', bytes)}/`),
  'nested tables': html(repeated('<table><tr><td>')),
  'nested divs': html(repeated('<div>')),
  'nested anchors': html(repeated('<a href=https://a.b>')),
  'nested formats': html(repeated('<b><i><u>')),
  attributes: html((bytes) => numbered(bytes, (n) => ` a${n}=b`), '<p', '>x'),
  'one attribute often': html(repeated(' a=b'), '<p', '>x'),
  'an attribute without end': html(repeated('x'), '<p title="'),
  'a style without end': html(repeated('display '), '<p style="', '">x'),
  'a style of semicolons': html(repeated(';display:'), '<p style="', '">x'),
  anchors: html((bytes) => numbered(bytes, (n) => `<a href="https://a.b/${n}">x</a>`)),
  'anchors without address': html(repeated('<a>x</a>')),
  'anchors left open': html(
    (bytes) => numbered(bytes, (n) => `<a href="/${n}">x`),
    '<base href="https://a.b/">',
  ),
  'long bases': html(repeated('<a href=x>'), `<base href="https://a.b/${'x'.repeat(8_000)}/">`),
  'closing tags': html(repeated('</p>')),
  'closing tags of none': html(repeated('</x>'), '<div>'.repeat(900)),
  paragraphs: html(repeated('<p>x')),
  'list items': html(repeated('<li>')),
  'tags unclosed': html(repeated('<')),
  'tags with names unclosed': html(repeated('<a ')),
  'a tag name': html(repeated('a'), '<'),
  comments: html(repeated('<!--x-->')),
  'comments unclosed': html(repeated('<!--')),
  'a comment of hyphens': html(repeated('-'), '<!--'),
  declarations: html(repeated('<!x>')),
  CDATA: html(repeated('<![CDATA[')),
  'scripts unclosed': html(repeated('</scrip'), '<script>'),
  styles: html(repeated('<style>x</style>')),
  'a title of entities': html(repeated('&amp;'), '<title>'),
  entities: html(repeated('&amp;')),
  'entities that grow': html(repeated('&NotEqualTilde;')),
  'entities unclosed': html(repeated('&am')),
  'entities in attributes': html(repeated('&amp'), '<a href="https://a.b/?', '">x</a>'),
  'numeric entities': html(repeated('&#x1F600;')),
  'digits of an entity': html(repeated('1'), '&#'),
  'an image in a data URI': html(repeated('QUJD'), '<img src="data:image/png;base64,', '">x'),
  'images in data URIs': html((bytes) =>
    fill(`<img src="data:image/png;base64,${'QUJD'.repeat(1_000)}">`, bytes),
  ),
  'a link in a data URI': html(repeated('QUJD'), '<a href="data:text/html;base64,', '">x</a>'),
  'alternatives of images': html(repeated('<img alt="x y">'), '<a href="https://a.b/">', '</a>'),
  forms: html(repeated('<form action="https://a.b"><button>x</button>')),
  'nested buttons': html(repeated('<button>x')),
  'preformatted lines': html(repeated('\n'), '<pre>'),
  'nested pre': html(repeated('<pre>\nx ')),
  'hidden elements': html(repeated('<p hidden>x')),
  'white space in HTML': html(repeated(' \n\t')),
  'invisible characters': html(repeated('\u200b\u00ad')),
  'codes in cells': html(repeated('<td>1</td>')),
  'codes in spans': html(repeated('<span>4</span>')),
  'links in HTML text': html((bytes) => numbered(bytes, (n) => `https://a.b/${n} `)),
  svg: html(repeated('<svg><math>')),
  'uppercase tags': html(repeated('<TABLE><TR><TD>X')),
}
