import type { Logger } from 'pino'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { IncomingMail } from './acceptance.js'
import type { SmtpMetrics } from './metrics.js'
import type { RefusalReason } from './replies.js'

/** Whose session a line is about. */
export interface SessionMark {
  id: string
  remoteAddress: string
}

const MAX_IDS = 20

/** Lines of refusals within a second, past which they are only counted: a flood is not to fill a disk. */
const MAX_REFUSALS_A_SECOND = 100
const SECOND_MS = 1_000

/** One wide log line and one count for each mail and each refusal. No content, no addresses. */
export class Journal {
  private second = { beganAtMs: 0, refusals: 0 }

  constructor(
    private readonly logger: Logger,
    private readonly metrics: SmtpMetrics,
  ) {}

  mailAccepted(
    { id, remoteAddress }: SessionMark,
    { raw, recipients, trace }: IncomingMail,
    messageIds: readonly MessageId[],
    { receiveMs, acceptMs }: { receiveMs: number; acceptMs: number },
  ): void {
    this.metrics.mailAccepted(raw.length, acceptMs)
    this.logger.info(
      {
        connectionId: id,
        remoteAddress,
        recipients: recipients.length,
        inboxIds: recipients.slice(0, MAX_IDS).map(({ inbox }) => inbox.id),
        messageIds: messageIds.slice(0, MAX_IDS),
        bytes: raw.length,
        isEncrypted: trace.tls !== null,
        receiveMs: round(receiveMs),
        acceptMs: round(acceptMs),
      },
      'mail accepted',
    )
  }

  /** Recipients of other domains, whose copy of a mail was accepted and dropped. */
  recipientsDiscarded({ id, remoteAddress }: SessionMark, recipients: number, bytes: number): void {
    this.metrics.recipientsDiscarded(recipients)
    this.logger.info({ connectionId: id, remoteAddress, recipients, bytes }, 'recipients discarded')
  }

  /** Any answer 4yz or 5yz; `code` is null if the client had left. */
  refused({ id, remoteAddress }: SessionMark, reason: RefusalReason, code: number | null): void {
    this.metrics.refusedFor(reason)
    const isOurs = reason === 'partial-append' || reason === 'log-unavailable' || reason === 'internal-error'
    if (!isOurs && !this.mayTell()) return
    this.logger[isOurs ? 'warn' : 'info']({ connectionId: id, remoteAddress, reason, code }, 'refused')
  }

  private mayTell(): boolean {
    const nowMs = performance.now()
    if (nowMs - this.second.beganAtMs > SECOND_MS) {
      const untold = this.second.refusals - MAX_REFUSALS_A_SECOND
      if (untold > 0) this.logger.warn({ untold }, 'refused so many more within a second')
      this.second = { beganAtMs: nowMs, refusals: 0 }
    }
    this.second.refusals += 1
    return this.second.refusals <= MAX_REFUSALS_A_SECOND
  }

  /** A fault on this side, or a bug: told beside the refusal that it leads to. */
  failed(error: unknown): void {
    this.logger.error({ err: error }, 'smtp edge failed')
  }

  /** A socket that broke: the client's affair. */
  connectionBroke(error: unknown): void {
    this.logger.debug({ err: error }, 'connection broke')
  }

  connectionsAre(count: number): void {
    this.metrics.connectionsAre(count)
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}
