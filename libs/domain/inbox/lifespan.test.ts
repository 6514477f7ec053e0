import { defaultLifespan, parseLifespan } from './new-inbox.js'

const HOUR_MS = 3_600_000

describe('a lifespan', () => {
  test.each([
    { text: '1m', ms: 60_000 },
    { text: '30m', ms: 30 * 60_000 },
    { text: '24h', ms: 24 * HOUR_MS },
    { text: '7d', ms: 168 * HOUR_MS },
    { text: '2w', ms: 336 * HOUR_MS },
    { text: '9999999999999m', ms: 9_999_999_999_999 * 60_000 },
  ])('$text is $ms ms, and keeps its text', ({ text, ms }) => {
    expect(parseLifespan(text)).toEqual({ text, ms })
  })

  it('loses its leading zeros, however many there are', () => {
    expect(parseLifespan('0090m')).toEqual({ text: '90m', ms: 90 * 60_000 })
    expect(parseLifespan(`${'0'.repeat(200_000)}7d`)).toEqual({ text: '7d', ms: 168 * HOUR_MS })
  })

  test.each(
    ['', 'm', '30', '0m', '00h', '-1m', '+1m', '1.5h', '1e3m', '1s', '30M', '1y', '1h30m'].concat([
      ' 1h',
      '1h ',
      '1h\n',
      '1 h',
      '١h',
    ]),
  )('%j is invalid', (text) => {
    expect(parseLifespan(text)).toBeNull()
  })

  test.each([
    { retention: { text: '1h', ms: HOUR_MS }, expected: '1h' },
    { retention: { text: '24h', ms: 24 * HOUR_MS }, expected: '24h' },
    { retention: { text: '30d', ms: 720 * HOUR_MS }, expected: '24h' },
  ])('is $expected by default if the retention is $retention.text', ({ retention, expected }) => {
    expect(defaultLifespan(retention)).toEqual(parseLifespan(expected))
  })
})
