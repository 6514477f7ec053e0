import type { MessageId } from '#libs/typeid/typeid.js'
import type { ParseThread } from './parse-thread.js'
import type { DefeatReason, WaitingMail } from './waiting-mail.js'

/** What a thread was given, and how it gets on. */
export class ParseJob {
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

  constructor(
    readonly thread: ParseThread,
    readonly mails: readonly WaitingMail[],
  ) {
    this.byId = new Map(mails.map((mail) => [mail.task.messageId, mail]))
  }

  get current(): WaitingMail | null {
    return this.mails[this.thread.index] ?? null
  }

  /** Wall-clock time for which the thread has been seen at the same mail, looked at every now and then. */
  msAtCurrent(): number {
    const now = performance.now()
    if (this.index !== this.thread.index) {
      this.index = this.thread.index
      this.sinceMs = now
      this.chargedMs = 0
    }
    return now - this.sinceMs
  }

  /** All that nobody has an answer for yet, but one. */
  unsettledBut(mail: WaitingMail | null): WaitingMail[] {
    return this.mails.filter((each) => each !== mail && !each.isSettled)
  }

  /** What nobody else has been asked for, and the thread has given no answer to. */
  unanswered(): WaitingMail[] {
    const { current, mails, isSlow } = this
    return mails.filter((mail) => !mail.isSettled && (!isSlow || mail === current))
  }

  mailOf(messageId: MessageId): WaitingMail | null {
    return this.byId.get(messageId) ?? null
  }
}
