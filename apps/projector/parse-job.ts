import type { AccountId, MessageId } from '#libs/domain/ids/typeid.js'
import { type ParseAllowance, ordinaryMs } from './parse-allowance.js'
import type { ParseThread } from './parse-thread.js'
import type { WaitingMail, DefeatReason } from './parse-task.js'

export type WatchedJob = ParseJob<Pick<ParseThread, 'index' | 'cpuMs' | 'stop' | 'end'>>

export interface JobWatchOptions {
  allowance: Pick<ParseAllowance, 'charge' | 'chargeAll' | 'isOver' | 'patienceMs' | 'timeoutMs'>
  /** Given what stands beside a slow mail: its thread leaves them. */
  onLeft: (mails: readonly WaitingMail[]) => void
  /** After each look. */
  onLooked: () => void
}

const LOOK_EVERY_MS = 10
/**
 * A mail at which a thread is longer is slow: those beside it are read elsewhere, and another thread takes its place.
 * CPU time, since on a busy machine a thread waits for its turn; but not for ever.
 */
const SLOW_AFTER_MS = 25
const STALLED_AFTER_MS = 250
/** CPU time, beyond the ordinary, of what is shown of a mail that was given up. */
const HEADER_MS = 200

const TIMEOUT = { code: 'parse-timeout', detail: 'reading this mail took longer than allowed' } as const

/** Looks at the jobs under way, charges a slow mail with what it takes, and ends it where that is too much. */
export class JobWatch {
  private readonly jobs = new Set<WatchedJob>()
  private looking: NodeJS.Timeout | null = null

  constructor(private readonly options: JobWatchOptions) {}

  get isOneSlow(): boolean {
    return [...this.jobs].some(({ isSlow }) => isSlow)
  }

  /** The account whose mail all jobs are at; null if they are at several accounts', or there are none. */
  get soleAccount(): AccountId | null {
    const [owner, ...others] = [...this.jobs].map(({ current }) => current?.task.accountId)
    return owner !== undefined && others.every((other) => other === owner) ? owner : null
  }

  begin(job: WatchedJob): void {
    this.jobs.add(job)
    this.looking ??= setInterval(() => this.look(), LOOK_EVERY_MS)
  }

  end(job: WatchedJob): void {
    this.jobs.delete(job)
    if (this.jobs.size === 0) this.stop()
  }

  /** Looks no more until the next job begins. */
  stop(): void {
    if (this.looking !== null) clearInterval(this.looking)
    this.looking = null
  }

  private look(): void {
    for (const job of this.jobs) {
      const seen = job.look()
      if (seen === null || seen.ms < SLOW_AFTER_MS || job.cut !== null) continue
      if (!job.isSlow && seen.ms > STALLED_AFTER_MS) this.markSlow(job)
      if (seen.ms > this.mostMs(job, seen.mail)) this.cut(job, seen.mail)
      else if (!job.isAsking) void this.weigh(job, seen)
    }
    this.options.onLooked()
  }

  /** A mail that has taken no more than the ordinary waits for the machine: its own fault it is not. */
  private mostMs(job: WatchedJob, { task }: WaitingMail): number {
    const { allowance } = this.options
    return job.chargedMs > 0 ? allowance.patienceMs(task) : allowance.timeoutMs
  }

  private markSlow(job: WatchedJob): void {
    job.isSlow = true
    job.thread.stop()
    this.options.onLeft(job.handOn())
  }

  /** Charges the mail under way with what it takes, and ends it where nobody pays for it. */
  private async weigh(job: WatchedJob, { mail, index }: SeenMail): Promise<void> {
    const { thread } = job
    job.isAsking = true
    const cpuMs = await thread.cpuMs()
    job.isAsking = false
    if (cpuMs === null || thread.index !== index || mail.isSettled) return
    if (cpuMs < SLOW_AFTER_MS && !job.isSlow) return
    if (!job.isSlow) this.markSlow(job)
    const excessMs = cpuMs - ordinaryMs(mail.task.size)
    if (mail.defeat !== null) {
      if (mail.defeat.shows === 'header' && excessMs > HEADER_MS) this.cut(job, mail)
      return
    }
    if (excessMs > job.chargedMs) {
      this.options.allowance.charge(mail.task, excessMs - job.chargedMs)
      job.chargedMs = excessMs
      // What it has taken is spent, so that nothing is left is what counts.
      if (this.options.allowance.isOver(mail.task, excessMs)) this.cut(job, mail)
    }
  }

  private cut(job: WatchedJob, mail: WaitingMail): void {
    if (job.cut !== null || mail.defeat?.shows === 'nothing') return
    job.cut = { mail, reason: TIMEOUT }
    this.options.allowance.chargeAll(mail.task)
    void job.thread.end()
  }
}

/** A mail as it was found under way. */
export interface SeenMail {
  mail: WaitingMail
  /** Its place in the job. */
  index: number
  ms: number
}

/** What a thread was given, and how it gets on. While it is looked at the thread may go on to the next mail at any moment. */
export class ParseJob<Thread extends Pick<ParseThread, 'index'> = ParseThread> {
  /** Whether one mail holds up those beside it, which have been handed to another thread then. */
  isSlow = false
  /** Which mail its thread was ended for, and why; null while it may go on. */
  cut: { mail: WaitingMail; reason: DefeatReason } | null = null
  /** What the mail under way has been charged with. */
  chargedMs = 0
  isAsking = false
  private index = -1
  private sinceMs = performance.now()
  private readonly byId: ReadonlyMap<MessageId, WaitingMail>
  /** What nobody else has been asked for. */
  private readonly own: Set<WaitingMail>

  constructor(
    readonly thread: Thread,
    readonly mails: readonly WaitingMail[],
  ) {
    this.own = new Set(mails)
    this.byId = new Map(mails.map((mail) => [mail.task.messageId, mail]))
  }

  get current(): WaitingMail | null {
    return this.mails[this.thread.index] ?? null
  }

  /** The mail under way, its place, and the wall-clock time for which it has been seen there; null past the last. */
  look(): SeenMail | null {
    const { index } = this.thread
    const now = performance.now()
    if (this.index !== index) {
      this.index = index
      this.sinceMs = now
      this.chargedMs = 0
    }
    const mail = this.mails[index]
    return mail === undefined ? null : { mail, index, ms: now - this.sinceMs }
  }

  /** Gives away what has no answer yet, but the mail under way: others are to be asked for it. */
  handOn(): WaitingMail[] {
    const { current } = this
    const others = this.unanswered().filter((mail) => mail !== current)
    for (const mail of others) this.own.delete(mail)
    return others
  }

  /** What nobody else has been asked for, and the thread has given no answer to. */
  unanswered(): WaitingMail[] {
    return [...this.own].filter(({ isSettled }) => !isSettled)
  }

  mailOf(messageId: MessageId): WaitingMail | null {
    return this.byId.get(messageId) ?? null
  }
}
