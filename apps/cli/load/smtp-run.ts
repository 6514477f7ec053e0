import { hash } from 'node:crypto'
import { Counts, rounded } from './counts.js'
import { Latency, type LatencyJson } from './latency.js'
import { MAIL_KINDS, type MailMix } from './mail-mix.js'
import type { Manifest } from './manifest.js'
import type { ProgressCounts } from './progress.js'
import { Schedule } from './schedule.js'
import { SmtpSender } from './smtp-sender.js'
import type { Outbox, SmtpReply, SmtpTarget } from './smtp-session.js'

export interface SmtpRunOptions {
  target: SmtpTarget
  connections: number
  /** Mails per second, and their number. */
  perSecond: number
  total: number
  sender: string
  recipients: readonly string[]
  mix: MailMix
  /** Part of each Message-ID. */
  runId: string
  /** Attempts after the first. */
  maxRetries: number
  /** Before the first retry; doubled before each further one. */
  retryDelayMs: number
  manifest: Manifest | null
}

export interface SmtpReport {
  scheduled: number
  /** Mails that were started. Each is accepted, refused, unknown or failed. */
  sent: number
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
  seconds: number
  /** Mails per second. */
  rate: { wanted: number; reached: number }
  /** From the scheduled time, or the start of the first attempt, to the reply 250. */
  latency_ms: { from_schedule: LatencyJson | null; from_start: LatencyJson | null }
  /** The maximum time from the scheduled to the actual start of a mail. */
  max_lag_ms: number
  is_interrupted: boolean
}

export type SmtpRunEnd = 'complete' | 'interrupted' | 'unreachable' | 'manifest-failed'

interface Mail {
  readonly index: number
  readonly recipient: string
  /** By `performance.now()`. */
  readonly scheduledMs: number
  readonly startedMs: number
  /** The time of day. */
  readonly sentAt: number
  retries: number
  sha256: string | null
  /** Why the last attempt failed. */
  error: string
  /** The reply that refused the last attempt. */
  refusal: SmtpReply | null
  /** Whether a connection was lost after the content, before its reply. */
  isUncertain: boolean
}

const TICK_MS = 1_000
const GRACE_MS = 5_000
const UNREACHABLE_MS = 30_000

/** Sends mails at a fixed rate, and counts what becomes of them. */
export class SmtpRun implements Outbox<Mail> {
  private readonly smtp: SmtpSender<Mail>
  private readonly fromSchedule = new Latency()
  private readonly fromStart = new Latency()
  /** Mails that wait until they are retried. */
  private readonly retryTimers = new Map<Mail, NodeJS.Timeout>()
  private readonly retries: Mail[] = []
  private readonly refusedByCode = new Counts()
  private readonly errorsByReason = new Counts()
  private readonly ending = Promise.withResolvers<undefined>()
  private schedule: Schedule
  private startMs = 0
  private endMs = 0
  private lastStartMs = 0
  private maxLagMs = 0
  private acceptedCount = 0
  private retriedCount = 0
  private unknownCount = 0
  private failedCount = 0
  private duplicateCount = 0
  private settledCount = 0
  private isStopped = false
  private end: SmtpRunEnd = 'complete'
  private arrivalTimer: NodeJS.Timeout | null = null
  private dateMs = 0
  private date = ''

  constructor(private readonly options: SmtpRunOptions) {
    this.schedule = new Schedule(options.perSecond, 0, 0)
    this.smtp = new SmtpSender(options.target, options.connections, this)
  }

  /**
   * Sends the mails. Resolves when each has its outcome, after `stop`, or if the target could not be reached for half a
   * minute. A target that can't be reached at first ends the run at once.
   */
  async run(): Promise<SmtpRunEnd> {
    const ticks = setInterval(() => this.tick(), TICK_MS)
    const ready = await this.smtp.open()
    this.startMs = this.lastStartMs = performance.now()
    if (ready === 0) this.stop('unreachable')
    else if (!this.isStopped) {
      const { perSecond, total } = this.options
      this.schedule = new Schedule(perSecond, total, this.startMs)
      this.wake()
    }
    await this.ending.promise
    this.isStopped = true
    clearInterval(ticks)
    if (this.arrivalTimer !== null) clearTimeout(this.arrivalTimer)
    await this.smtp.close()
    this.endMs = performance.now()
    return this.end
  }

  /** Begins no further mail, and gives those in flight five seconds. */
  stop(end: Exclude<SmtpRunEnd, 'complete'>): void {
    if (this.isStopped) return
    this.isStopped = true
    this.end = end
    this.schedule.stop()
    for (const [mail, timer] of this.retryTimers) {
      clearTimeout(timer)
      this.giveUp(mail)
    }
    this.retryTimers.clear()
    for (const mail of this.retries.splice(0)) this.giveUp(mail)
    // Connections may still be opening.
    if (this.startMs === 0) void this.smtp.close()
    if (this.settledCount === this.schedule.takenCount) this.ending.resolve(undefined)
    else setTimeout(() => this.ending.resolve(undefined), end === 'unreachable' ? 0 : GRACE_MS).unref()
  }

  /** Begins mails that are due, if a connection is idle. */
  wake(): void {
    this.smtp.wake()
    this.idle()
  }

  progress(): ProgressCounts {
    return {
      done: this.options.total === 0 ? 1 : this.settledCount / this.options.total,
      sent: this.schedule.takenCount,
      errors: this.refusedByCode.total + this.unknownCount + this.failedCount + this.errorsByReason.total,
      lagMs: this.schedule.lagMs(performance.now()),
    }
  }

  report(): SmtpReport {
    const sent = this.schedule.takenCount
    const { perSecond, total } = this.options
    // The last mail takes its share of the time too.
    const startingS = (this.lastStartMs - this.startMs) / 1_000 + 1 / perSecond
    return {
      scheduled: total,
      sent,
      accepted: this.acceptedCount,
      retried: this.retriedCount,
      refused: this.refusedByCode.toJson(),
      unknown: this.unknownCount,
      failed: this.failedCount,
      possible_duplicates: this.duplicateCount,
      errors: this.errorsByReason.toJson(),
      seconds: rounded((this.endMs - this.startMs) / 1_000),
      rate: { wanted: perSecond, reached: rounded(sent / startingS) },
      latency_ms: { from_schedule: this.fromSchedule.toJson(), from_start: this.fromStart.toJson() },
      max_lag_ms: rounded(this.maxLagMs),
      is_interrupted: this.end === 'interrupted',
    }
  }

  take(): Mail | null {
    const retried = this.retries.shift()
    if (retried !== undefined) return retried
    if (this.options.manifest?.isFull === true) return null
    const nowMs = performance.now()
    const index = this.schedule.take(nowMs)
    if (index === null) return null
    const { recipients } = this.options
    const scheduledMs = this.schedule.timeOf(index)
    this.lastStartMs = nowMs
    if (nowMs - scheduledMs > this.maxLagMs) this.maxLagMs = nowMs - scheduledMs
    return {
      index,
      recipient: recipients[index % recipients.length] ?? '',
      scheduledMs,
      startedMs: nowMs,
      sentAt: Date.now(),
      retries: 0,
      sha256: null,
      error: '',
      refusal: null,
      isUncertain: false,
    }
  }

  envelopeOf(mail: Mail): { sender: string; recipient: string } {
    return { sender: this.options.sender, recipient: mail.recipient }
  }

  /** The same for each attempt. */
  sourceOf(mail: Mail): string {
    const { index, recipient } = mail
    const { mix, recipients } = this.options
    // Each recipient gets every kind, whatever their number.
    const kind = (index + Math.floor(index / recipients.length)) % MAIL_KINDS.length
    const source = mix.source(kind, {
      id: this.idOf(mail),
      recipient,
      date: this.dateOf(mail.sentAt),
      code: String(100_000 + ((index * 7_919) % 900_000)),
    })
    mail.sha256 ??= hash('sha256', source)
    return source
  }

  accepted(mail: Mail): void {
    const nowMs = performance.now()
    this.acceptedCount += 1
    if (mail.isUncertain) this.duplicateCount += 1
    this.fromSchedule.record(nowMs - mail.scheduledMs)
    this.fromStart.record(nowMs - mail.startedMs)
    this.settle(mail, new Date().toISOString())
  }

  refused(mail: Mail, reply: SmtpReply): void {
    mail.error = reply.text
    mail.refusal = reply
    // A 4yz reply is transient (RFC 5321, section 4.2.1). Greylisting refuses each first attempt with one.
    if (reply.code < 500) this.retry(mail)
    else this.giveUp(mail)
  }

  lost(mail: Mail, isSourceSent: boolean): void {
    mail.error = isSourceSent ? 'connection lost before the reply to the content' : 'connection lost'
    mail.refusal = null
    if (isSourceSent) mail.isUncertain = true
    this.retry(mail)
  }

  /** Sets the timer for the next arrival. A connection that is busy takes its next mail by itself. */
  idle(): void {
    const { nextMs } = this.schedule
    if (this.arrivalTimer !== null || nextMs === null || !this.smtp.hasIdle) return
    if (this.options.manifest?.isFull === true) return
    this.arrivalTimer = setTimeout(
      () => {
        this.arrivalTimer = null
        this.wake()
      },
      Math.max(nextMs - performance.now(), 0),
    )
  }

  connectionFailed(reason: string): void {
    this.errorsByReason.add(reason)
  }

  private tick(): void {
    const nowMs = performance.now()
    this.options.manifest?.flush()
    this.smtp.endStalled(nowMs)
    if (this.smtp.unreachableMs(nowMs) > UNREACHABLE_MS) this.stop('unreachable')
  }

  private idOf({ index }: Mail): string {
    return `<${this.options.runId}.${index}@load.mayfly>`
  }

  /** As in the header Date (RFC 5322, section 3.3). */
  private dateOf(timeMs: number): string {
    if (Math.floor(timeMs / 1_000) !== Math.floor(this.dateMs / 1_000) || this.date === '') {
      this.dateMs = timeMs
      this.date = new Date(timeMs).toUTCString().replace('GMT', '+0000')
    }
    return this.date
  }

  private retry(mail: Mail): void {
    const { maxRetries, retryDelayMs } = this.options
    if (this.isStopped || mail.retries === maxRetries) {
      this.giveUp(mail)
      return
    }
    const timer = setTimeout(
      () => {
        this.retryTimers.delete(mail)
        this.retries.push(mail)
        this.retriedCount += 1
        this.smtp.wake()
      },
      retryDelayMs * 2 ** mail.retries,
    )
    mail.retries += 1
    this.retryTimers.set(mail, timer)
  }

  private giveUp(mail: Mail): void {
    if (mail.isUncertain) this.unknownCount += 1
    else if (mail.refusal === null) this.failedCount += 1
    else this.refusedByCode.add(String(mail.refusal.code))
    this.settle(mail, null)
  }

  private settle(mail: Mail, acceptedAt: string | null): void {
    this.settledCount += 1
    const { recipient, sha256, error } = mail
    this.options.manifest?.add({
      recipient,
      id: this.idOf(mail),
      sent_at: new Date(mail.sentAt).toISOString(),
      accepted_at: acceptedAt,
      sha256,
      ...(acceptedAt === null ? { error } : {}),
    })
    if (this.schedule.nextMs === null && this.settledCount === this.schedule.takenCount)
      this.ending.resolve(undefined)
  }
}
