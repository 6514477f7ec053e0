import fc from 'fast-check'
import { makeSecretKey, seal, SEAL_OVERHEAD_BYTES, SealBrokenError, secretKey, unseal } from './content.js'

const anyBytes = fc.uint8Array({ maxLength: 500 })
const anyKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => secretKey(Buffer.from(bytes)))

describe('sealed bytes', () => {
  it('are opened with the same key and context', () => {
    fc.assert(
      fc.property(anyKey, fc.string(), anyBytes, (key, context, plaintext) => {
        const sealed = seal(key, context, plaintext)
        expect(sealed).toHaveLength(plaintext.length + SEAL_OVERHEAD_BYTES)
        expect(unseal(key, context, sealed)).toEqual(Buffer.from(plaintext))
      }),
    )
  })

  it('can’t be opened with another key', () => {
    fc.assert(
      fc.property(anyKey, anyKey, anyBytes, (key, other, plaintext) => {
        fc.pre(!key.equals(other))
        expect(() => unseal(other, 'mail', seal(key, 'mail', plaintext))).toThrow(SealBrokenError)
      }),
    )
  })

  it('can’t be opened in another context', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), anyBytes, (context, other, plaintext) => {
        fc.pre(context !== other)
        const key = makeSecretKey()
        expect(() => unseal(key, other, seal(key, context, plaintext))).toThrow(SealBrokenError)
      }),
    )
  })

  it('can’t be opened if a bit was changed or the end was cut off', () => {
    fc.assert(
      fc.property(anyBytes, fc.nat(), fc.integer({ min: 0, max: 7 }), (plaintext, at, bit) => {
        const key = makeSecretKey()
        const sealed = seal(key, 'mail', plaintext)
        const index = at % sealed.length
        const changed = Buffer.from(sealed)
        changed.writeUInt8(changed.readUInt8(index) ^ (1 << bit), index)
        expect(() => unseal(key, 'mail', changed)).toThrow(SealBrokenError)
        expect(() => unseal(key, 'mail', sealed.subarray(0, index))).toThrow(SealBrokenError)
      }),
    )
  })

  it('are never the same twice: no nonce is repeated', () => {
    const key = makeSecretKey()
    const nonces = Array.from({ length: 2_000 }, () =>
      seal(key, 'mail', Buffer.alloc(0)).toString('hex', 1, 13),
    )
    expect(new Set(nonces).size).toBe(nonces.length)
  })

  it('require a key of exactly 32 bytes', () => {
    expect(() => secretKey(Buffer.alloc(31))).toThrow(RangeError)
    expect(() => secretKey(Buffer.alloc(33))).toThrow(RangeError)
  })
})
