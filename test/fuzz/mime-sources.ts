import fc from 'fast-check'
import { change, golden, repetition } from './mime-changes.js'
import {
  boundary,
  charset,
  encoding,
  eol,
  html,
  mediaType,
  multipart,
  otherHeader,
  words,
} from './mime-words.js'

/*
 * Sources of mail for the fuzzer: the golden files, and trees of parts with valid, unusual or broken headers and bodies.
 * They are then mutated, cut, joined and repeated.
 */

/** Encodes the text as one character per byte, as sources are assembled. */
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

/** Any source, from random bytes to realistic mail. */
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
