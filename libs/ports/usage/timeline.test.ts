import fc from 'fast-check'
import { bucketMs, MAX_BUCKETS, timelineOf } from './usage-store.js'

const NOON = Date.parse('2026-11-21T12:00:00.000Z')
const after = (ms: number) => new Date(NOON + ms)

describe('a timeline', () => {
  it('has a bucket for each second of a short run, including those without mail', () => {
    const counts = new Map([
      [NOON, { mails: 3, bytes: 300 }],
      [NOON + 2_000, { mails: 1, bytes: 100 }],
    ])
    expect(timelineOf(after(400), after(2_100), counts)).toEqual([
      { from: after(0), to: after(1_000), mails: 3, bytes: 300 },
      { from: after(1_000), to: after(2_000), mails: 0, bytes: 0 },
      { from: after(2_000), to: after(3_000), mails: 1, bytes: 100 },
    ])
  })

  test.each([
    { spanMs: 0, widthMs: 1_000 },
    { spanMs: 199_999, widthMs: 1_000 },
    { spanMs: 200_000, widthMs: 2_000 },
    { spanMs: 3_600_000, widthMs: 30_000 },
    { spanMs: 90 * 86_400_000, widthMs: 12 * 3_600_000 },
    { spanMs: 400 * 86_400_000, widthMs: 3 * 86_400_000 },
  ])('of $spanMs ms has buckets of $widthMs ms', ({ spanMs, widthMs }) => {
    expect(bucketMs(after(0), after(spanMs))).toBe(widthMs)
  })

  it('covers any run without a gap, in at most 200 buckets', () => {
    const anyTime = fc.date({ min: new Date(0), max: new Date('2200-01-01T00:00:00Z'), noInvalidDate: true })
    fc.assert(
      fc.property(anyTime, fc.nat(10_000 * 86_400_000), (first, spanMs) => {
        const last = new Date(first.getTime() + spanMs)
        const buckets = timelineOf(first, last, new Map())
        expect(buckets.length).toBeLessThanOrEqual(MAX_BUCKETS)
        expect(buckets[0]?.from.getTime()).toBeLessThanOrEqual(first.getTime())
        expect(buckets.at(-1)?.to.getTime()).toBeGreaterThan(last.getTime())
        for (const [index, { from }] of buckets.slice(1).entries()) expect(from).toEqual(buckets[index]?.to)
      }),
    )
  })
})
