import { createHistogram } from 'node:perf_hooks'
import type { Outcome } from './smtp-session.js'

export interface SmtpResultsJson {
  accepted: number
  /** Attempts after the first one of a mail. */
  retried: number
  /** Mails whose last attempt was refused, by the code of the reply. */
  refused: Record<string, number>
  /** Mails whose connection was lost after the content, before its reply. They may have arrived. */
  unknown: number
  /** Mails whose connection was lost before the content. They have not arrived. */
  failed: number
  /** Accepted mails that were also sent on a connection that was lost before the reply. They may have arrived twice. */
  possible_duplicates: number
  /** Connections that failed, by reason. */
  errors: Record<string, number>
  /** From the scheduled time, or the start of the first attempt, to the reply 250. */
  latency_ms: { from_schedule: LatencyJson | null; from_start: LatencyJson | null }
}

export interface StartedMail {
  /** By `performance.now()`. */
  readonly scheduledMs: number
  readonly startedMs: number
  /** Of the last attempt. */
  outcome: Outcome
  /** Whether a connection was lost after the content, before its reply. */
  isUncertain: boolean
}

/** Counts what becomes of the mails of a run. */
export class SmtpResults {
  /** Mails that have their outcome. */
  settledCount = 0
  readonly counts: Omit<SmtpResultsJson, 'latency_ms'> = {
    ...{ accepted: 0, retried: 0, refused: {}, unknown: 0, failed: 0, possible_duplicates: 0, errors: {} },
  }
  private readonly fromSchedule = new Latency()
  private readonly fromStart = new Latency()

  /** Mails that were not accepted, and connections that failed. */
  get errorCount(): number {
    const { accepted, errors } = this.counts
    return Object.values(errors).reduce((sum, count) => sum + count, this.settledCount - accepted)
  }

  accepted({ scheduledMs, startedMs, isUncertain }: StartedMail): void {
    const nowMs = performance.now()
    this.settledCount += 1
    this.counts.accepted += 1
    if (isUncertain) this.counts.possible_duplicates += 1
    this.fromSchedule.record(nowMs - scheduledMs)
    this.fromStart.record(nowMs - startedMs)
  }

  /** The mail is not retried. */
  notAccepted({ outcome, isUncertain }: StartedMail): void {
    this.settledCount += 1
    if (isUncertain) this.counts.unknown += 1
    else if (typeof outcome === 'string') this.counts.failed += 1
    else count(this.counts.refused, String(outcome.code))
  }

  toJson(): SmtpResultsJson {
    const latency_ms = { from_schedule: this.fromSchedule.toJson(), from_start: this.fromStart.toJson() }
    return { ...this.counts, latency_ms }
  }
}

export function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

/** Such as `550: 3, 421: 1`. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts)
  return entries.length === 0 ? '0' : entries.map(([name, count]) => `${name}: ${count}`).join(', ')
}

interface LatencyJson {
  p50: number
  p95: number
  p99: number
  max: number
}

const MAX_US = 86_400_000_000

/** An HDR histogram of latencies, with three significant digits. */
class Latency {
  private readonly microseconds = createHistogram({ lowest: 1, highest: MAX_US, figures: 3 })

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
  const figures = Object.entries(latency) as [string, number][]
  return figures.map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join(', ')
}
