import { Counts } from './counts.js'
import { Latency, type LatencyJson } from './latency.js'
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
