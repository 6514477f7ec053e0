/** A part of a run. */
export interface TimelineBucket {
  from: Date
  to: Date
  mails: number
  bytes: number
}

/** Counts of the non-empty buckets, by start time in milliseconds. */
export type BucketCounts = ReadonlyMap<number, { mails: number; bytes: number }>

export const MAX_BUCKETS = 200

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const WIDTHS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((count) => count * HOUR),
]

/** The shortest common length of buckets, which begin at its multiples, of which at most MAX_BUCKETS cover a span. */
export function bucketMs(first: Date, last: Date): number {
  const fits = (widthMs: number) => bucketsOf(first, last, widthMs) <= MAX_BUCKETS
  const days = Math.ceil((last.getTime() - first.getTime()) / DAY / (MAX_BUCKETS - 1))
  return WIDTHS_MS.find(fits) ?? days * DAY
}

/** All buckets from the first mail to the last, those without mail included. */
export function timelineOf(first: Date, last: Date, counts: BucketCounts): TimelineBucket[] {
  const widthMs = bucketMs(first, last)
  const start = Math.floor(first.getTime() / widthMs) * widthMs
  return Array.from({ length: bucketsOf(first, last, widthMs) }, (_, index) => {
    const from = start + index * widthMs
    const { mails = 0, bytes = 0 } = counts.get(from) ?? {}
    return { from: new Date(from), to: new Date(from + widthMs), mails, bytes }
  })
}

function bucketsOf(first: Date, last: Date, widthMs: number): number {
  return Math.floor(last.getTime() / widthMs) - Math.floor(first.getTime() / widthMs) + 1
}
