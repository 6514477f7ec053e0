import { hash } from 'node:crypto'
import { MAIL_KINDS, type MailMix } from './mail-mix.js'
import type { Manifest } from './manifest.js'
import type { ProgressCounts } from './progress.js'
import { Schedule, type ScheduleJson } from './schedule.js'
import type { SmtpTarget } from './smtp-connection.js'
import { SmtpResults, type StartedMail, type SmtpResultsJson } from './smtp-results.js'
import { SmtpSender } from './smtp-sender.js'
import type { Outbox, SmtpReply } from './smtp-session.js'

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

export interface SmtpReport extends SmtpResultsJson, ScheduleJson {
  scheduled: number
  /** Mails that were started. Each is accepted, refused, unknown or failed. */
  sent: number
  is_interrupted: boolean
}

export type SmtpRunEnd = 'complete' | 'interrupted' | 'unreachable' | 'manifest-failed'

interface Mail extends StartedMail {
  readonly index: number
  readonly recipient: string
  /** The time of day. */
  readonly sentAt: number
  retries: number
  sha256: string | null
  /** Why the last attempt failed. */
  error: string
}

const TICK_MS = 1_000
const GRACE_MS = 5_000
const UNREACHABLE_MS = 30_000

/** Sends mails at a fixed rate, and counts what becomes of them. */
export class SmtpRun implements Outbox<Mail> {
  private readonly smtp: SmtpSender<Mail>
  private readonly results = new SmtpResults()
  /** Mails that wait until they are retried. */
  private readonly retryTimers = new Map<Mail, NodeJS.Timeout>()
  private readonly retries: Mail[] = []
  private readonly ending = Promise.withResolvers<undefined>()
  private schedule: Schedule
  private endMs = 0
  private isOpening = true
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
    this.isOpening = false
    const { perSecond, total } = this.options
    this.schedule = new Schedule(perSecond, total, performance.now())
    if (this.isStopped) this.schedule.stop()
    else if (ready === 0) this.stop('unreachable')
    else this.wake()
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
    if (this.isOpening) void this.smtp.close()
    if (this.results.settledCount === this.schedule.takenCount) this.ending.resolve(undefined)
    else setTimeout(() => this.ending.resolve(undefined), end === 'unreachable' ? 0 : GRACE_MS).unref()
  }

  /** Begins mails that are due, if a connection is idle. */
  wake(): void {
    this.smtp.wake()
    this.idle()
  }

  progress(): ProgressCounts {
    return {
      done: this.options.total === 0 ? 1 : this.results.settledCount / this.options.total,
      sent: this.schedule.takenCount,
      errors: this.results.errorCount,
      lagMs: this.schedule.lagMs(performance.now()),
    }
  }

  report(): SmtpReport {
    const { latency_ms, ...counts } = this.results.toJson()
    const { max_lag_ms, ...times } = this.schedule.toJson(this.endMs)
    return {
      scheduled: this.options.total,
      sent: this.schedule.takenCount,
      ...counts,
      ...times,
      latency_ms,
      max_lag_ms,
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
    return {
      index,
      recipient: recipients[index % recipients.length] ?? '',
      scheduledMs: this.schedule.timeOf(index),
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
    this.results.accepted(mail)
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
    this.results.connectionFailed(reason)
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
        this.results.retried()
        this.smtp.wake()
      },
      retryDelayMs * 2 ** mail.retries,
    )
    mail.retries += 1
    this.retryTimers.set(mail, timer)
  }

  private giveUp(mail: Mail): void {
    this.results.notAccepted(mail)
    this.settle(mail, null)
  }

  private settle(mail: Mail, acceptedAt: string | null): void {
    const { recipient, sha256, error } = mail
    this.options.manifest?.add({
      recipient,
      id: this.idOf(mail),
      sent_at: new Date(mail.sentAt).toISOString(),
      accepted_at: acceptedAt,
      sha256,
      ...(acceptedAt === null ? { error } : {}),
    })
    if (this.schedule.nextMs === null && this.results.settledCount === this.schedule.takenCount)
      this.ending.resolve(undefined)
  }
}
