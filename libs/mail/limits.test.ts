import fc from 'fast-check'
import { cutToJsonBytes } from './limits.js'

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

const characters = fc.oneof(
  fc.constantFrom('\0', '\x01', '\b', '\t', '\n', '\x0b', '\f', '\r', '\x1f', '"', '\\', '\x7f', '\x80'),
  fc.constantFrom('\u07ff', '\u0800', '\u2028', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'),
  fc.string({ unit: 'binary', maxLength: 3 }),
)

test('a text is cut to the longest prefix that has at most so many bytes as JSON', () => {
  fc.assert(
    fc.property(fc.array(characters), fc.nat({ max: 60 }), (pieces, maxBytes) => {
      const text = pieces.join('')
      const kept = cutToJsonBytes(text, maxBytes)
      expect(text.startsWith(kept)).toBe(true)
      expect(kept.isWellFormed()).toBe(true)
      expect(jsonBytes(kept)).toBeLessThanOrEqual(maxBytes)
      const [next = ''] = text.slice(kept.length)
      if (next !== '') expect(jsonBytes(kept + next)).toBeGreaterThan(maxBytes)
    }),
    { numRuns: 1_000 },
  )
})
