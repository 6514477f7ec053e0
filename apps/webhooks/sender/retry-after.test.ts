import { retryAfterMs } from './exchange.js'

const now = new Date('1994-11-06T08:49:07Z')
const DAY_MS = 86_400_000

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['86400', DAY_MS],
    ['86401', DAY_MS],
    ['9'.repeat(400), DAY_MS],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 30_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 30_000],
    ['Sun Nov  6 08:49:37 1994', 30_000],
    ['Sun, 06 Nov 1994 08:49:00 GMT', 0],
    ['Sun, 06 Nov 2094 08:49:37 GMT', DAY_MS],
  ])('%s is %d milliseconds', (value, ms) => {
    expect(retryAfterMs(value, now)).toBe(ms)
  })

  it.each([
    undefined,
    '',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    'soon',
    '1994-11-06',
    'Sun, 99 Nov 1994 08:49:37 GMT',
    '1, 2',
  ])('%s is ignored', (value) => {
    expect(retryAfterMs(value, now)).toBeNull()
  })
})
