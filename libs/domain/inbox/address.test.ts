import fc from 'fast-check'
import { ADDRESS_BYTES, addressOfRecipient, makeAddress } from './new-inbox.js'

const LOCAL_PART = 'k3v9x2m4q8wz7t5b6n0c'
const ADDRESS = `${LOCAL_PART}@mayfly.test`

describe('the address of a recipient', () => {
  test.each([
    { recipient: ADDRESS },
    { recipient: ADDRESS.toUpperCase() },
    { recipient: `${LOCAL_PART}+@mayfly.test` },
    { recipient: `${LOCAL_PART}+signup@mayfly.test` },
    { recipient: `${LOCAL_PART}+one+two@mayfly.test` },
    { recipient: `${LOCAL_PART}+a@b@MayFly.Test` },
  ])('$recipient is the address of the inbox', ({ recipient }) => {
    expect(addressOfRecipient(recipient, 'mayfly.test')).toBe(ADDRESS)
    expect(addressOfRecipient(recipient, 'MAYFLY.test')).toBe(ADDRESS)
  })

  test.each([
    { recipient: '', why: 'nothing' },
    { recipient: LOCAL_PART, why: 'no domain' },
    { recipient: '@mayfly.test', why: 'no local part' },
    { recipient: `+${LOCAL_PART}@mayfly.test`, why: 'a tag only' },
    { recipient: `${LOCAL_PART}@other.test`, why: 'another domain' },
    { recipient: `${LOCAL_PART}@mx.mayfly.test`, why: 'a subdomain' },
    { recipient: `${LOCAL_PART}@mayfly.test.`, why: 'a trailing dot' },
    { recipient: `${LOCAL_PART.slice(1)}@mayfly.test`, why: 'too short' },
    { recipient: `${LOCAL_PART}0@mayfly.test`, why: 'too long' },
    { recipient: `${LOCAL_PART.slice(1)}u@mayfly.test`, why: 'a letter that is not in the alphabet' },
    { recipient: `${LOCAL_PART.slice(1)}.@mayfly.test`, why: 'a dot' },
    { recipient: ` ${ADDRESS}`, why: 'a leading space' },
  ])('is null for $recipient: $why', ({ recipient }) => {
    expect(addressOfRecipient(recipient, 'mayfly.test')).toBeNull()
  })
})

describe('a generated address', () => {
  const bytes = fc.uint8Array({ minLength: ADDRESS_BYTES, maxLength: ADDRESS_BYTES })
  const tag = fc.stringMatching(/^[a-zA-Z0-9.+_-]{0,30}$/)

  it('is recognized in any case and with any tag', () => {
    fc.assert(
      fc.property(bytes, tag, (random, text) => {
        const address = makeAddress(random, 'Mayfly.Test')
        const [localPart = ''] = address.split('@')
        expect(address).toMatch(/^[0-9a-hjkmnp-tv-z]{20}@mayfly\.test$/)
        expect(addressOfRecipient(address.toUpperCase(), 'mayfly.test')).toBe(address)
        expect(addressOfRecipient(`${localPart}+${text}@mayfly.test`, 'mayfly.test')).toBe(address)
      }),
    )
  })

  it('differs if the lower five bits of any byte differ', () => {
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        const isSame = one.every((byte, index) => (byte & 31) === ((other[index] ?? 0) & 31))
        expect(makeAddress(one, 'mayfly.test') === makeAddress(other, 'mayfly.test')).toBe(isSame)
      }),
    )
  })

  it.each([0, ADDRESS_BYTES - 1, ADDRESS_BYTES + 1])('is not made from %d bytes', (length) => {
    expect(() => makeAddress(new Uint8Array(length), 'mayfly.test')).toThrow(RangeError)
  })
})
