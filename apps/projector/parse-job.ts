import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { ParseThread } from './parse-thread.js'
import type { DefeatReason, WaitingMail } from './waiting-mail.js'

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
