import { durationPattern, wholeNumbersUpTo } from './validation.js'

describe('a pattern of whole numbers', () => {
  it.each([1, 4, 9, 10, 30, 101, 720, 1_000])('takes those from 1 to %d, and no other', (most) => {
    const pattern = new RegExp(`^(${wholeNumbersUpTo(most)})$`)
    const taken = Array.from({ length: 12_000 }, (_, number) => number).filter((number) =>
      pattern.test(String(number)),
    )
    expect(taken).toEqual(Array.from({ length: most }, (_, index) => index + 1))
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
  ])('says $is to "$text"', ({ text, is }) => {
    expect(pattern.test(text)).toBe(is)
  })
})
