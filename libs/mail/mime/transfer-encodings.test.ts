import fc from 'fast-check'
import { decodeBase64, decodeQuotedPrintable, replaceEach } from './transfer-encodings.js'

/** The pieces of a text; each has the given length, and the last one is the rest. */
function cut(text: string, lengths: number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (const length of lengths) {
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return [...pieces, text.slice(at)]
}

const content = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const lengths = fc.array(fc.nat({ max: 40 }), { maxLength: 20 })

test('base64 is decoded at any line length, and with any characters in between', () => {
  fc.assert(
    fc.property(
      content,
      lengths,
      fc.constantFrom('\r\n', '\n', ' ', '*', '-', '_'),
      (bytes, lines, breaks) => {
        const [text = '', padding = ''] = /^([^=]*)(=*)$/.exec(bytes.toString('base64'))?.slice(1) ?? []
        const encoded = cut(text, lines).join(breaks) + padding
        expect(decodeBase64(Buffer.from(encoded)).equals(bytes)).toBe(true)
      },
    ),
  )
})

test('pieces of base64 that were encoded separately are joined', () => {
  fc.assert(
    fc.property(fc.array(content, { maxLength: 10 }), (contents) => {
      const encoded = contents.map((each) => each.toString('base64')).join('\r\n')
      expect(decodeBase64(Buffer.from(encoded)).equals(Buffer.concat(contents))).toBe(true)
    }),
  )
})

test('text after the padding of base64 is ignored', () => {
  expect(decodeBase64(Buffer.from('SGk=\r\n--\r\nlist footer\r\nSGk=\r\n')).toString()).toBe('Hi')
})

const bodies: { send: string; expect: string }[] = [
  { send: 'Gr=C3=BC=c3=9fe', expect: 'Grüße' },
  { send: 'one=\r\ntwo=\nthree= \t\r\nfour', expect: 'onetwothreefour' },
  { send: 'end  \r\nkept=20\r\nlast \t', expect: 'end\r\nkept \r\nlast' },
  { send: 'a=b =ZZ 100% =', expect: 'a=b =ZZ 100% ' },
  { send: 'raw ü stays', expect: 'raw ü stays' },
  { send: '', expect: '' },
]

test.each(bodies)('quoted-printable: $send', ({ send, expect: expected }) => {
  expect(decodeQuotedPrintable(Buffer.from(send)).toString()).toBe(expected)
})

test('quoted-printable is decoded to the bytes that were encoded, at any line length', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.integer({ min: 1, max: 25 }), (bytes, perLine) => {
      const encoded = Array.from(bytes, (byte) => `=${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      const lines = Array.from({ length: Math.ceil(encoded.length / perLine) }, (_, line) =>
        encoded.slice(line * perLine, (line + 1) * perLine).join(''),
      )
      const decoded = decodeQuotedPrintable(Buffer.from(lines.join('=\r\n')))
      expect(decoded.equals(bytes)).toBe(true)
    }),
  )
})

// In more than linear time, this would not end.
test('megabytes of white space in quoted-printable are decoded', () => {
  const decoded = decodeQuotedPrintable(Buffer.from(`${' '.repeat(10_000_000)}x${'= '.repeat(1_000_000)}`))
  expect(decoded.subarray(0, 10_000_001).toString().trim()).toBe('x')
})

test.each([
  { from: '\r\n', to: '\n', pieces: ['\r\n', '\r', '\n', '\r\r\n', 'x', '\r\n\r\n'] },
  { from: 'a', to: '¥', pieces: ['a', 'aa', 'b', 'ab'] },
])('replaceEach replaces each $from in a text of any length, like replaceAll', ({ from, to, pieces }) => {
  for (let length = 65_533; length <= 65_537; length += 1) {
    for (const piece of pieces) {
      const text = ('x'.repeat(length) + piece).repeat(3)
      expect(replaceEach(text, from, to) === text.replaceAll(from, to)).toBe(true)
    }
  }
  expect(replaceEach('', from, to)).toBe('')
})
