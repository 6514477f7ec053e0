import fc from 'fast-check'
import { decodeQuotedPrintable } from './transfer-encodings.js'

const bodies: { send: string; expect: string }[] = [
  { send: 'Gr=C3=BC=c3=9fe', expect: 'Grüße' },
  { send: 'one=\r\ntwo=\nthree= \t\r\nfour', expect: 'onetwothreefour' },
  { send: 'end  \r\nkept=20\r\nlast \t', expect: 'end\r\nkept \r\nlast' },
  { send: 'a=b =ZZ 100% =', expect: 'a=b =ZZ 100% ' },
  { send: 'raw ü stays', expect: 'raw ü stays' },
  { send: '', expect: '' },
]

test.each(bodies)('$send', ({ send, expect: expected }) => {
  expect(decodeQuotedPrintable(Buffer.from(send)).toString()).toBe(expected)
})

test('whatever bytes were encoded, and wherever the lines were broken, the same come back', () => {
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

// In more than linear time it would not come to an end.
test('megabytes of white space are decoded', () => {
  const decoded = decodeQuotedPrintable(Buffer.from(`${' '.repeat(10_000_000)}x${'= '.repeat(1_000_000)}`))
  expect(decoded.subarray(0, 10_000_001).toString().trim()).toBe('x')
})
