import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { SmtpReply } from './smtp-session.js'

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
  /** The reply that refused the last attempt. */
  refusal: SmtpReply | null
  /** Whether a connection was lost after the content, before its reply. */
  isUncertain: boolean
}

/** Counts what becomes of the mails of a run. */
export class SmtpResults {
  /** Mails that have their outcome. */
  settledCount = 0
  private readonly fromSchedule = new Latency()
  private readonly fromStart = new Latency()
  private readonly refusedByCode = new Counts()
  private readonly errorsByReason = new Counts()
  private acceptedCount = 0
  private retriedCount = 0
  private unknownCount = 0
  private failedCount = 0
  private duplicateCount = 0

  /** Mails that were not accepted, and connections that failed. */
  get errorCount(): number {
    return this.refusedByCode.total + this.unknownCount + this.failedCount + this.errorsByReason.total
  }

  accepted({ scheduledMs, startedMs, isUncertain }: StartedMail): void {
    const nowMs = performance.now()
    this.settledCount += 1
    this.acceptedCount += 1
    if (isUncertain) this.duplicateCount += 1
    this.fromSchedule.record(nowMs - scheduledMs)
    this.fromStart.record(nowMs - startedMs)
  }

  /** The mail is not retried. */
  notAccepted({ refusal, isUncertain }: StartedMail): void {
    this.settledCount += 1
    if (isUncertain) this.unknownCount += 1
    else if (refusal === null) this.failedCount += 1
    else this.refusedByCode.add(String(refusal.code))
  }

  retried(): void {
    this.retriedCount += 1
  }

  connectionFailed(reason: string): void {
    this.errorsByReason.add(reason)
  }

  toJson(): SmtpResultsJson {
    return {
      accepted: this.acceptedCount,
      retried: this.retriedCount,
      refused: this.refusedByCode.toJson(),
      unknown: this.unknownCount,
      failed: this.failedCount,
      possible_duplicates: this.duplicateCount,
      errors: this.errorsByReason.toJson(),
      latency_ms: { from_schedule: this.fromSchedule.toJson(), from_start: this.fromStart.toJson() },
    }
  }
}

/** Counts by name, such as the code of a reply. */
class Counts {
  private readonly byName = new Map<string, number>()

  add(name: string): void {
    this.byName.set(name, (this.byName.get(name) ?? 0) + 1)
  }

  get total(): number {
    return [...this.byName.values()].reduce((sum, count) => sum + count, 0)
  }

  toJson(): Record<string, number> {
    return Object.fromEntries(this.byName)
  }
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
