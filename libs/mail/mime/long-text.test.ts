import { replaceEach } from './transfer-encodings.js'

test.each([
  { from: '\r\n', to: '\n', pieces: ['\r\n', '\r', '\n', '\r\r\n', 'x', '\r\n\r\n'] },
  { from: 'a', to: '¥', pieces: ['a', 'aa', 'b', 'ab'] },
])('replaces each $from in a text of any length, as replaceAll does', ({ from, to, pieces }) => {
  for (let length = 65_533; length <= 65_537; length += 1) {
    for (const piece of pieces) {
      const text = ('x'.repeat(length) + piece).repeat(3)
      expect(replaceEach(text, from, to) === text.replaceAll(from, to)).toBe(true)
    }
  }
  expect(replaceEach('', from, to)).toBe('')
})
