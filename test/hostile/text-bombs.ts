import { CRLF, fill, numbered, sourceOf, type Bomb } from './bomb.js'

function text(unit: string, contentType = 'text/plain; charset=utf-8', encoding = '8bit'): Bomb {
  return (bytes) =>
    sourceOf(
      [`Content-Type: ${contentType}`, `Content-Transfer-Encoding: ${encoding}`],
      Buffer.from(fill(unit, bytes), 'latin1'),
    )
}

const base64Lines = `${'QUJD'.repeat(19)}${CRLF}`

/** Bombs of transfer encodings, charsets, plain text, links and codes. */
export const TEXT_BOMBS: Readonly<Record<string, Bomb>> = {
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
}
