import { CRLF, fill, numbered, sourceOf, type Bomb } from './bomb.js'

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

/** Bombs of nested and repeated parts, their headers and delimiters. */
export const STRUCTURE_BOMBS: Readonly<Record<string, Bomb>> = {
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
}
