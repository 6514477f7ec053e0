import fc from 'fast-check'
import { decodeBase64 } from './transfer-encodings.js'

/** Cut after each of the given lengths in turn. */
function cut(text: string, lengths: number[]): string[] {
  const pieces: string[] = []
  let at = 0
  for (const length of lengths) {
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return [...pieces, text.slice(at)]
}

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const lengths = fc.array(fc.nat({ max: 40 }), { maxLength: 20 })

test('whatever is encoded comes back, however it is broken', () => {
  fc.assert(
    fc.property(
      bytes,
      lengths,
      fc.constantFrom('\r\n', '\n', ' ', '*', '-', '_'),
      (content, lines, breaks) => {
        const [text = '', padding = ''] = /^([^=]*)(=*)$/.exec(content.toString('base64'))?.slice(1) ?? []
        const encoded = cut(text, lines).join(breaks) + padding
        expect(decodeBase64(Buffer.from(encoded)).equals(content)).toBe(true)
      },
    ),
  )
})

test('pieces that were encoded each by itself are joined', () => {
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 10 }), (contents) => {
      const encoded = contents.map((content) => content.toString('base64')).join('\r\n')
      expect(decodeBase64(Buffer.from(encoded)).equals(Buffer.concat(contents))).toBe(true)
    }),
  )
})

test('what follows the padding and is no base64 adds nothing', () => {
  expect(decodeBase64(Buffer.from('SGk=\r\n--\r\nlist footer\r\nSGk=\r\n')).toString()).toBe('Hi')
})
