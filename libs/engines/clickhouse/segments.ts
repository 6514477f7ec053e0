import { INTERVAL_MS, USAGE_INTERVALS, type UsageInterval } from '#libs/ports/usage/usage-store.js'

/** A part of a span of time, and the coarsest of the tables that tells it exactly. Milliseconds since 1970. */
export interface Segment {
  source: 'raw' | 'minute' | 'hour' | 'day'
  from: number
  to: number
}

/**
 * A span in parts that follow each other, none of them coarser than the interval: whole days, hours and minutes from
 * figures, what is left at both ends from the events themselves.
 */
export function segmentsOf(from: number, to: number, interval: UsageInterval): Segment[] {
  if (from >= to) return []
  if (interval === 'second') return [{ source: 'raw', from, to }]
  const unit = INTERVAL_MS[interval]
  const [first, last] = [Math.ceil(from / unit) * unit, Math.floor(to / unit) * unit]
  const finer = USAGE_INTERVALS[USAGE_INTERVALS.indexOf(interval) - 1] ?? 'second'
  if (first >= last) return segmentsOf(from, to, finer)
  return [
    ...segmentsOf(from, first, finer),
    { source: interval, from: first, to: last },
    ...segmentsOf(last, to, finer),
  ]
}
