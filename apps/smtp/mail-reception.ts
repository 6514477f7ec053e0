import type { Envelope } from '#libs/mail/message.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { IncomingMail } from './acceptance.js'
import type { CommandStream } from './command-stream.js'
import type { RemoteHost } from './connection-limits.js'
import type { Journal, SessionMark } from './journal.js'
import type { MailUsage } from './mail-usage.js'
import { MailData } from './mail-data.js'
import { Refusal, REFUSALS } from './replies.js'
import type { Transaction } from './transaction.js'

export interface ReceptionLimits {
  maxMessageBytes: number
  /** From DATA to the answer. */
  dataTimeoutMs: number
}

export interface ReceptionContext extends ReceptionLimits {
  journal: Journal
  usage: Pick<MailUsage, 'refused'>
  /** Never rejects. */
  accept: (mail: IncomingMail) => Promise<MessageId[] | Refusal>
  /** A mail has given its memory back, maybe after its connection was closed. */
  onRelease: (host: RemoteHost) => void
}

export interface MailToCome {
  transaction: Transaction
  session: SessionMark
  host: RemoteHost
  trace: Omit<Envelope, 'rcptTo'>
}

interface MailUnderWay extends MailToCome {
  data: MailData
  startedAtMs: number
  isComplete: boolean
}

/** What DATA brings, from its first byte to its answer: at most one mail at a time. */
export class MailReception {
  private mail: MailUnderWay | null = null
  private readonly departing = new AbortController()

  constructor(private readonly context: ReceptionContext) {}

  get isUnderWay(): boolean {
    return this.mail !== null
  }

  isOverdue(nowMs: number): boolean {
    return this.mail !== null && nowMs - this.mail.startedAtMs > this.context.dataTimeoutMs
  }

  /** Has the stream read a mail, unless there is no memory for it. `onWhole` is told when it has come. */
  begin(
    toCome: MailToCome,
    stream: CommandStream,
    { onWhole, onEndless }: { onWhole: (readOn: () => void) => void; onEndless: () => void },
  ): Refusal | null {
    const { maxMessageBytes: maxBytes } = this.context
    const { host, transaction } = toCome
    const data = MailData.begin({ maxBytes, declaredBytes: transaction.declaredBytes }, host.memory)
    if (data === null) return this.refuse(transaction, REFUSALS.memoryFull)
    const mail = { ...toCome, data, startedAtMs: performance.now(), isComplete: false }
    this.mail = mail
    host.incoming.add(data)
    const onEnd = (readOn: () => void) => {
      mail.isComplete = true
      host.incoming.delete(data)
      onWhole(readOn)
    }
    stream.receive({ data, onEnd, onEndless })
    return null
  }

  /** Accepts or refuses the mail that has come; then another may begin. Never rejects. */
  async finish(): Promise<MessageId[] | Refusal> {
    const { mail } = this
    if (mail === null) throw new Error('no mail has come')
    const outcome = await this.outcomeOf(mail)
    mail.data.release()
    this.context.onRelease(mail.host)
    this.mail = null
    return outcome
  }

  /**
   * To be called when the connection has closed. Returns whether a mail was being received. A mail that is complete is
   * still accepted if it need not wait.
   */
  abandon(): boolean {
    this.departing.abort()
    if (this.mail?.isComplete !== false) return false
    const { data, host } = this.mail
    host.incoming.delete(data)
    data.release()
    return true
  }

  private async outcomeOf({ data, startedAtMs, ...come }: MailUnderWay): Promise<MessageId[] | Refusal> {
    const content = data.content()
    if (content.state !== 'whole') return this.refuse(come.transaction, REFUSAL_OF_CONTENT[content.state])
    const { journal, dataTimeoutMs, accept } = this.context
    const { recipients, senderKey, discardedCount } = come.transaction
    const mail = {
      raw: content.raw,
      trace: come.trace,
      recipients,
      senderKey,
      deadlineMs: startedAtMs + dataTimeoutMs,
      departure: this.departing.signal,
    }
    const receivedAtMs = performance.now()
    const outcome = recipients.length === 0 ? [] : await accept(mail)
    if (outcome instanceof Refusal) return outcome
    if (discardedCount > 0) journal.recipientsDiscarded(come.session, discardedCount, content.raw.length)
    if (recipients.length > 0) {
      const acceptMs = performance.now() - receivedAtMs
      journal.mailAccepted(come.session, mail, outcome, { receiveMs: receivedAtMs - startedAtMs, acceptMs })
    }
    return outcome
  }

  private refuse({ recipients, senderKey }: Transaction, refusal: Refusal): Refusal {
    for (const { inbox } of recipients) this.context.usage.refused(inbox, senderKey, refusal)
    return refusal
  }
}

const REFUSAL_OF_CONTENT = {
  'too-large': REFUSALS.tooLarge,
  'memory-full': REFUSALS.memoryFull,
  'bare-line-break': REFUSALS.bareLineBreak,
} as const
