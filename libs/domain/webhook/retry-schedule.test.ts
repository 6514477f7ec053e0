import fc from 'fast-check'
import { nextAttemptAt } from './retry-schedule.js'

const MAX_ATTEMPTS = 10

const failedAt = new Date(Date.UTC(2026, 0, 1))

function waitMs(attempt: number, { retryAfterMs = null as number | null, random = 0 } = {}): number | null {
  const next = nextAttemptAt({ attempt, failedAt, retryAfterMs, random })
  return next === null ? null : next.getTime() - failedAt.getTime()
}

describe('the schedule of attempts', () => {
  it('waits longer each time: ten attempts in about three days', () => {
    const hours = (count: number) => count * 3_600_000
    expect(Array.from({ length: MAX_ATTEMPTS }, (_, index) => waitMs(index + 1))).toEqual([
      ...[5_000, 300_000, 1_800_000, hours(2), hours(5)],
      ...[hours(10), hours(14), hours(20), hours(24), null],
    ])
  })

  it('adds a random delay of up to a tenth, and is never early', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: MAX_ATTEMPTS - 1 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, random) => {
          const least = waitMs(attempt) ?? NaN
          const ms = waitMs(attempt, { random }) ?? NaN
          expect(ms).toBeGreaterThanOrEqual(least)
          expect(ms).toBeLessThanOrEqual(least * 1.1)
        },
      ),
    )
    expect(waitMs(2, { random: 0.5 })).toBe(315_000)
  })

  test.each([
    { retryAfterMs: 60_000, attempt: 1, expected: 60_000 },
    { retryAfterMs: 60_000, attempt: 2, expected: 300_000 },
    { retryAfterMs: 1_000_000_000, attempt: 1, expected: 86_400_000 },
    { retryAfterMs: 60_000, attempt: MAX_ATTEMPTS, expected: null },
  ])(
    'honours a Retry-After of $retryAfterMs ms after attempt $attempt',
    ({ retryAfterMs, attempt, expected }) => {
      expect(waitMs(attempt, { retryAfterMs })).toBe(expected)
    },
  )
})
