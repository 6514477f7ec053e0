import fc from 'fast-check'
import Type from 'typebox'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { masterKeys } from '#libs/engines/distributed/key-vault/logged-key-vault-harness.contract.js'
import { SignedTokens } from './signed-tokens.js'

const PAYLOAD = Type.Object({ inbox: Type.String() })
const [one, two] = Array.from({ length: 2 }, () => makeSecretKey().toString('base64'))
const keys = masterKeys(one ?? '')
const tokens = new SignedTokens(keys, 'reading', PAYLOAD)
const now = new Date('2026-01-01T00:00:00Z')
const later = new Date('2026-01-01T00:00:01Z')

describe('a signed token', () => {
  it('gives its payload back, in every process with the same master key', () => {
    const other = new SignedTokens(masterKeys(`${one},${two}`), 'reading', PAYLOAD)
    fc.assert(
      fc.property(fc.string({ maxLength: 50, unit: 'binary' }), (inbox) => {
        expect(other.verify(tokens.sign({ inbox }, later), now)).toEqual({ inbox })
      }),
    )
  })

  it('is valid until its expiry', () => {
    const token = tokens.sign({ inbox: 'a' }, later)
    expect(tokens.verify(token, new Date(later.getTime() - 1))).not.toBeNull()
    expect(tokens.verify(token, later)).toBeNull()
  })

  it('is not valid for another purpose, another master key or another form of payload', () => {
    const token = tokens.sign({ inbox: 'a' }, later)
    expect(new SignedTokens(keys, 'writing', PAYLOAD).verify(token, now)).toBeNull()
    expect(new SignedTokens(masterKeys(two ?? ''), 'reading', PAYLOAD).verify(token, now)).toBeNull()
    const numbers = Type.Object({ inbox: Type.Number() })
    expect(new SignedTokens(keys, 'reading', numbers).verify(token, now)).toBeNull()
  })

  it('is not valid once any of its characters has changed', () => {
    const token = tokens.sign({ inbox: 'a' }, later)
    for (let index = 0; index < token.length; index += 1) {
      const other = token[index] === 'A' ? 'B' : 'A'
      expect(tokens.verify(token.slice(0, index) + other + token.slice(index + 1), now)).toBeNull()
    }
  })

  test.each(['', '.', 'a', 'a.b', `.${'A'.repeat(43)}`, `${'A'.repeat(100_000)}.${'A'.repeat(43)}`])(
    'is not: %.20j',
    (text) => {
      expect(tokens.verify(text, now)).toBeNull()
    },
  )

  it('has at most 1,000 characters', () => {
    expect(() => tokens.sign({ inbox: 'a'.repeat(1_000) }, later)).toThrow(RangeError)
  })
})
