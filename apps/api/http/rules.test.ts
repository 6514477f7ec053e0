import { durationPattern, parseTime, wholeNumbersUpTo } from './rules.js'

describe('a time', () => {
  test.each([
    { text: '2026-11-21T08:00:00Z', is: '2026-11-21T08:00:00.000Z' },
    { text: '2026-11-21t08:00:00.123456789z', is: '2026-11-21T08:00:00.123Z' },
    { text: '2026-11-21T08:00:00+05:30', is: '2026-11-21T02:30:00.000Z' },
    { text: '2028-02-29T23:59:59-00:00', is: '2028-02-29T23:59:59.000Z' },
    { text: '0000-01-01T00:00:00Z', is: '0000-01-01T00:00:00.000Z' },
    { text: '9999-12-31T23:59:59Z', is: '9999-12-31T23:59:59.000Z' },
  ])('is read from $text', ({ text, is }) => {
    expect(parseTime(text)?.toISOString()).toBe(is)
  })

  test.each([
    '',
    'today',
    '2026-11-21',
    '2026-11-21T08:00:00',
    '2026-11-21 08:00:00Z',
    '2026-11-21T08:00Z',
    '2026-13-01T08:00:00Z',
    '2026-02-29T08:00:00Z',
    '2026-04-31T08:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T08:00:61Z',
    '2026-11-21T08:00:00.Z',
    '2026-11-21T08:00:00+0530',
    '2026-11-21T08:00:00+24:00',
    '0000-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-01:00',
    '+012026-11-21T08:00:00Z',
  ])('is refused: %s', (text) => {
    expect(parseTime(text)).toBeNull()
  })
})

describe('a pattern of whole numbers', () => {
  it.each([1, 4, 9, 10, 30, 101, 720, 1_000])('matches exactly the numbers from 1 to %d', (max) => {
    const pattern = new RegExp(`^(${wholeNumbersUpTo(max)})$`)
    const matched = Array.from({ length: 12_000 }, (_, number) => number).filter((number) =>
      pattern.test(String(number)),
    )
    expect(matched).toEqual(Array.from({ length: max }, (_, index) => index + 1))
  })
})

describe('a pattern of durations', () => {
  const pattern = new RegExp(`^${durationPattern({ m: 1, h: 60, d: 1_440, w: 10_080 }, 43_200)}$`, 'u')

  it.each([
    { text: '1m', is: true },
    { text: '43200m', is: true },
    { text: '43201m', is: false },
    { text: '0030m', is: true },
    { text: '0m', is: false },
    { text: '720h', is: true },
    { text: '721h', is: false },
    { text: '30d', is: true },
    { text: '4w', is: true },
    { text: '5w', is: false },
    { text: '30', is: false },
    { text: ' 1m', is: false },
  ])('matches "$text": $is', ({ text, is }) => {
    expect(pattern.test(text)).toBe(is)
  })
})
