import fc from 'fast-check'
import { generateSecret, isMistyped, prefixOf, SECRET_DIGITS, parseGrace } from './access.js'

const anyBytes = fc.uint8Array({ minLength: 2 * SECRET_DIGITS, maxLength: 2 * SECRET_DIGITS })

describe('a secret', () => {
  it('has the documented format and a valid checksum', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/), anyBytes, (environment, bytes) => {
        // The first bytes may have too few usable ones; the second ones are all usable.
        const draws = [bytes, new Uint8Array(bytes.length).fill(7)]
        const secret = generateSecret(environment, () => draws.shift() ?? new Uint8Array(64).fill(7))
        expect(secret).toMatch(new RegExp(`^mf_${environment}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}$`))
        expect(isMistyped(secret)).toBe(false)
        const last = secret.endsWith('0') ? '1' : '0'
        expect(isMistyped(secret.slice(0, -1) + last)).toBe(true)
        expect(secret.startsWith(prefixOf(secret))).toBe(true)
        expect(prefixOf(secret).length).toBeLessThan(secret.length / 2)
      }),
    )
  })

  it('is the same for the same bytes, and ignores bytes that would favour some digits', () => {
    const bytes = Uint8Array.from({ length: 64 }, (_, index) => (index % 2 === 0 ? 248 + (index % 8) : index))
    expect(generateSecret('a', () => bytes)).toBe(generateSecret('a', () => bytes))
    const odd = bytes.filter((_, index) => index % 2 === 1)
    expect(generateSecret('a', () => bytes)).toBe(generateSecret('a', () => odd))
  })
})

describe('a grace period', () => {
  test.each([
    { text: '0', ms: 0 },
    { text: '5s', ms: 5_000 },
    { text: '30m', ms: 1_800_000 },
    { text: '24h', ms: 86_400_000 },
    { text: '7d', ms: 604_800_000 },
    { text: '1w', ms: 604_800_000 },
    { text: '', ms: null },
    { text: '5', ms: null },
    { text: '-1m', ms: null },
    { text: '1.5h', ms: null },
    { text: '1y', ms: null },
  ])('of "$text" is $ms milliseconds', ({ text, ms }) => {
    expect(parseGrace(text)).toBe(ms)
  })
})
