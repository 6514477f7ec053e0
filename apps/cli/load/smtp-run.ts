import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import { Backoff, pauseUntilAborted } from '#libs/runtime/timing.js'
import { MAIL_KINDS, mailMix } from './mail-mix.js'
import type { ManifestLine } from './manifest.js'
import type { ProgressCounts } from './progress.js'
import { Schedule, type ScheduleJson } from './schedule.js'
import { count, SmtpResults, type SmtpResultsJson, type StartedMail } from './smtp-results.js'
import { errorText, SmtpSession, type Outbox, type Outcome, type SmtpTarget } from './smtp-session.js'

export interface SmtpRunOptions {
  target: SmtpTarget
  connections: number
  /** Mails per second, and their number. */
  rate: number
  total: number
  /** About the bytes of a mail. */
  size: number
  /** The sender. */
  from: string
  recipients: readonly string[]
  /** Attempts after the first. */
  retries: number
  /** Milliseconds before the first retry; doubled before each further one. */
  retryDelay: number
  /** Gets a line of JSON for each mail. */
  manifest: Writable | null
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
  readonly sender: string
  readonly recipient: string
  /** The time of day. */
  readonly sentAt: Date
  retries: number
  sha256: string | null
}

const TICK_MS = 1_000
const GRACE_MS = 5_000
const UNREACHABLE_MS = 30_000
const RECONNECT = { firstMs: 100, maxMs: 5_000 }

/** Sends mails at a fixed rate over a fixed number of connections, and counts what becomes of them. */
export class SmtpRun implements Outbox<Mail> {
  private readonly makeSource: ReturnType<typeof mailMix>
  /** Part of each Message-ID. */
  private readonly runId = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`
  private readonly results = new SmtpResults()
  private readonly sessions = new Set<SmtpSession>()
  /** Sessions that wait for a mail. They get null if they end. */
  private readonly idle = new Map<SmtpSession, (mail: Mail | null) => void>()
  private readonly retries: Mail[] = []
  /** Aborts when no further mail is begun. */
  private readonly stopping = new AbortController()
  /** Aborts when the connections are ended. */
  private readonly closing = new AbortController()
  private readonly settled = Promise.withResolvers<undefined>()
  private schedule: Schedule
  private endMs = 0
  private end: SmtpRunEnd = 'complete'
  private arrivalTimer: NodeJS.Timeout | null = null
  /** When a connection was last ready, by `performance.now()`. */
  private reachedMs = performance.now()

  constructor(private readonly options: SmtpRunOptions) {
    this.makeSource = mailMix(options.size, options.from)
    this.schedule = new Schedule(options.rate, 0, 0)
    setMaxListeners(0, this.stopping.signal, this.closing.signal)
    options.manifest?.on('drain', () => this.wake()).on('error', () => this.stop('manifest-failed'))
  }

  /**
   * Sends the mails. Resolves when each has its outcome, after `stop`, or if the target could not be reached for half a
   * minute. A target that can't be reached at first ends the run at once.
   */
  async run(): Promise<SmtpRunEnd> {
    const { connections, rate, total } = this.options
    const ticks = setInterval(() => this.tick(), TICK_MS)
    const opened = await Promise.all(Array.from({ length: connections }, () => this.connect()))
    if (!this.isStopped) this.schedule = new Schedule(rate, total, performance.now())
    if (opened.every((session) => session === null)) this.stop('unreachable')
    const workers = opened.map((session) => this.work(session))
    await this.settled.promise
    this.stopping.abort()
    this.closing.abort()
    clearInterval(ticks)
    if (this.arrivalTimer !== null) clearTimeout(this.arrivalTimer)
    for (const session of this.sessions) session.quit()
    await Promise.all(workers)
    this.endMs = performance.now()
    return this.end
  }

  /** Begins no further mail, and gives those in flight five seconds. */
  stop(end: Exclude<SmtpRunEnd, 'complete'>): void {
    if (this.isStopped) return
    this.end = end
    this.schedule.stop()
    this.stopping.abort()
    for (const mail of this.retries.splice(0)) this.giveUp(mail)
    // A session that is not open yet would delay the end.
    for (const session of this.sessions) if (!session.isReady) session.quit()
    this.endIfSettled()
    setTimeout(() => this.settled.resolve(undefined), end === 'unreachable' ? 0 : GRACE_MS).unref()
  }

  /** Begins mails that are due, if a session is idle. */
  wake(): void {
    for (const [session, begin] of this.idle) {
      const mail = this.take()
      if (mail === null) break
      this.idle.delete(session)
      begin(mail)
    }
    this.setArrivalTimer()
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
    return {
      scheduled: this.options.total,
      sent: this.schedule.takenCount,
      ...this.results.toJson(),
      ...this.schedule.toJson(this.endMs),
      is_interrupted: this.end === 'interrupted',
    }
  }

  take(): Mail | null {
    const retried = this.retries.shift()
    if (retried !== undefined) return retried
    const { manifest, recipients, from: sender } = this.options
    // The disk is behind.
    if (manifest?.writableNeedDrain === true) return null
    const nowMs = performance.now()
    const index = this.schedule.take(nowMs)
    if (index === null) return null
    return {
      index,
      sender,
      recipient: recipients[index % recipients.length] ?? '',
      scheduledMs: this.schedule.timeOf(index),
      startedMs: nowMs,
      sentAt: new Date(),
      retries: 0,
      sha256: null,
      outcome: 'not-sent',
      isUncertain: false,
    }
  }

  /** The same for each attempt. */
  sourceOf(mail: Mail): string {
    const { index, recipient, sentAt } = mail
    const { recipients } = this.options
    // Each recipient gets every kind, whatever their number.
    const kindIndex = (index + Math.floor(index / recipients.length)) % MAIL_KINDS.length
    const source = this.makeSource(MAIL_KINDS[kindIndex] ?? 'text', {
      id: this.idOf(mail),
      recipient,
      date: sentAt.toUTCString().replace('GMT', '+0000'),
      code: String(100_000 + ((index * 7_919) % 900_000)),
    })
    mail.sha256 ??= hash('sha256', source)
    return source
  }

  settle(mail: Mail, outcome: Outcome): void {
    if (typeof outcome === 'object' && outcome.code < 400) {
      this.results.accepted(mail)
      this.record(mail, new Date().toISOString())
      return
    }
    mail.outcome = outcome
    if (outcome === 'no-reply') mail.isUncertain = true
    // A 4yz reply is transient (RFC 5321, section 4.2.1). Greylisting refuses each first attempt with one.
    const isTransient = typeof outcome === 'string' || outcome.code < 500
    if (isTransient && mail.retries < this.options.retries && !this.isStopped) void this.retry(mail)
    else this.giveUp(mail)
  }

  private get isStopped(): boolean {
    return this.stopping.signal.aborted
  }

  private tick(): void {
    const nowMs = performance.now()
    if ([...this.sessions].some((session) => session.isReady)) this.reachedMs = nowMs
    if (nowMs - this.reachedMs > UNREACHABLE_MS) this.stop('unreachable')
  }

  /** Sends mail over a session. After it was lost, opens another one. */
  private async work(opened: SmtpSession | null): Promise<void> {
    const { signal } = this.closing
    const reconnectPause = new Backoff(RECONNECT)
    for (let session = opened; !signal.aborted; session = await this.connect()) {
      while (session?.isReady === true) {
        const mail = this.take() ?? (await this.arrival(session))
        if (mail !== null) await session.send(mail, this)
      }
      if (session?.hasDelivered === true) reconnectPause.reset()
      await reconnectPause.wait(signal)
    }
  }

  /** Resolves with null if the session can't be opened. */
  private async connect(): Promise<SmtpSession | null> {
    if (this.closing.signal.aborted) return null
    const session = new SmtpSession(this.options.target)
    this.sessions.add(session)
    const closed = session.closed.then(() => {
      this.sessions.delete(session)
      this.idle.get(session)?.(null)
      this.idle.delete(session)
      if (session.failure !== null && !this.closing.signal.aborted)
        count(this.results.counts.errors, session.failure)
    })
    if (await session.open()) return session
    await closed
    return null
  }

  /** The next mail for a session that is idle; null if the session ends. */
  private arrival(session: SmtpSession): Promise<Mail | null> {
    return new Promise((resolve) => {
      this.idle.set(session, resolve)
      this.setArrivalTimer()
    })
  }

  private setArrivalTimer(): void {
    const { nextMs } = this.schedule
    if (this.arrivalTimer !== null || nextMs === null || this.idle.size === 0) return
    if (this.options.manifest?.writableNeedDrain === true) return
    const delayMs = Math.max(nextMs - performance.now(), 0)
    this.arrivalTimer = setTimeout(() => {
      this.arrivalTimer = null
      this.wake()
    }, delayMs)
  }

  private async retry(mail: Mail): Promise<void> {
    const delayMs = this.options.retryDelay * 2 ** mail.retries
    mail.retries += 1
    await pauseUntilAborted(delayMs, this.stopping.signal)
    if (this.isStopped) this.giveUp(mail)
    else {
      this.results.counts.retried += 1
      this.retries.push(mail)
      this.wake()
    }
  }

  private giveUp(mail: Mail): void {
    this.results.notAccepted(mail)
    this.record(mail, null)
  }

  private record(mail: Mail, acceptedAt: string | null): void {
    const { recipient, sha256, outcome, sentAt } = mail
    const line: ManifestLine = {
      ...{ recipient, id: this.idOf(mail), sent_at: sentAt.toISOString(), accepted_at: acceptedAt, sha256 },
      ...(acceptedAt === null ? { error: errorText(outcome) } : {}),
    }
    this.options.manifest?.write(`${JSON.stringify(line)}\n`)
    this.endIfSettled()
  }

  private idOf({ index }: Mail): string {
    return `<${this.runId}.${index}@load.mayfly>`
  }

  private endIfSettled(): void {
    const isAllTaken = this.schedule.nextMs === null
    if (isAllTaken && this.results.settledCount === this.schedule.takenCount) this.settled.resolve(undefined)
  }
}
