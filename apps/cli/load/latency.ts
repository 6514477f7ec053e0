import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'

export interface LatencyJson {
  p50: number
  p95: number
  p99: number
  max: number
}

const MAX_US = 86_400_000_000

/** An HDR histogram of latencies, with three significant digits. */
export class Latency {
  private readonly microseconds: RecordableHistogram = createHistogram({
    lowest: 1,
    highest: MAX_US,
    figures: 3,
  })

  record(ms: number): void {
    this.microseconds.record(Math.min(Math.max(Math.round(ms * 1_000), 1), MAX_US))
  }

  /** In milliseconds; null if nothing was recorded. */
  toJson(): LatencyJson | null {
    const { count, max } = this.microseconds
    if (count === 0) return null
    // The highest value of a bucket may be over the maximum.
    const ms = (percent: number) => Math.min(this.microseconds.percentile(percent), max) / 1_000
    return { p50: ms(50), p95: ms(95), p99: ms(99), max: max / 1_000 }
  }
}

export function latencyText(latency: LatencyJson | null): string {
  if (latency === null) return '-'
  const { p50, p95, p99, max } = latency
  return `p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)}, p99 ${p99.toFixed(1)}, max ${max.toFixed(1)}`
}
