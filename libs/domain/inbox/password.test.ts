import fc from 'fast-check'
import { makePassword, PASSWORD_BYTES } from './new-inbox.js'

describe('a password', () => {
  const bytes = fc.uint8Array({ minLength: PASSWORD_BYTES, maxLength: PASSWORD_BYTES })

  it('has 26 characters, and differs if any bit differs', () => {
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        expect(makePassword(one)).toMatch(/^[0-7][0-9a-v]{25}$/)
        expect(makePassword(one) === makePassword(other)).toBe(Buffer.from(one).equals(other))
      }),
    )
  })

  it.each([0, PASSWORD_BYTES - 1, PASSWORD_BYTES + 1])('is not made from %d bytes', (length) => {
    expect(() => makePassword(new Uint8Array(length))).toThrow(RangeError)
  })
})
