import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { Metrics } from '#libs/runtime/process/metrics.js'
import type { IncomingMail } from './mail-data.js'
import type { Refusal, RefusalReason } from './replies.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'

/*
 * Records mails and refusals: as log lines and metrics (Journal), and as usage events (MailUsage).
 */

/** The session that a log line is about. */
export interface SessionRef {
  id: string
  remoteAddress: string
}

const MAX_IDS = 20

/** Of each kind. Further ones are counted in one line, so that a flood does not fill the disk. */
const MAX_LINES_PER_SECOND = 100
const SECOND_MS = 1_000

/** Counts mails and refusals, and logs each in a line, without content and mail addresses. */
export class Journal {
  private readonly acceptedLines = new LineLimit((more) =>
    this.logger.info({ mails: more }, 'more mails accepted within a second'),
  )
  private readonly refusedLines = new LineLimit((more) =>
    this.logger.warn({ refusals: more }, 'more refusals within a second'),
  )
  private readonly discardedLines = new LineLimit((more) =>
    this.logger.info({ mails: more }, 'more mails with discarded recipients within a second'),
  )
  private readonly metrics: ReturnType<typeof smtpMetrics>

  constructor(
    private readonly logger: Logger,
    registry: Registry,
  ) {
    this.metrics = smtpMetrics(registry)
  }

  mailAccepted(
    { id, remoteAddress }: SessionRef,
    { raw, recipients, trace }: IncomingMail,
    messageIds: readonly MessageId[],
    { receiveMs, acceptMs }: { receiveMs: number; acceptMs: number },
  ): void {
    this.metrics.accepted.inc()
    this.metrics.bytes.inc(raw.length)
    this.metrics.acceptSeconds.observe(acceptMs / 1000)
    this.logger[this.acceptedLines.take() ? 'info' : 'debug'](
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

  /** Recipients in foreign domains, whose copy of a mail was accepted and dropped. */
  recipientsDiscarded({ id, remoteAddress }: SessionRef, recipients: number, bytes: number): void {
    this.metrics.discarded.inc(recipients)
    const level = this.discardedLines.take() ? 'info' : 'debug'
    this.logger[level]({ connectionId: id, remoteAddress, recipients, bytes }, 'recipients discarded')
  }

  /** Any reply 4yz or 5yz; `code` is null if there was no reply. */
  refused({ id, remoteAddress }: SessionRef, reason: RefusalReason, code: number | null): void {
    this.metrics.refused.inc({ reason, code: code === null ? '' : String(code) })
    if (reason === 'partial-append') this.metrics.partial.inc()
    const isOurs = reason === 'partial-append' || reason === 'log-unavailable' || reason === 'internal-error'
    if (!isOurs && !this.refusedLines.take()) return
    this.logger[isOurs ? 'warn' : 'info']({ connectionId: id, remoteAddress, reason, code }, 'refused')
  }

  /** A fault of this server, or a bug. The refusal that it causes is logged separately. */
  failed(error: unknown): void {
    this.logger.error({ err: error }, 'smtp edge failed')
  }

  /** A socket error, which is not a fault of this server. */
  connectionBroke(error: unknown): void {
    this.logger.debug({ err: error }, 'connection broke')
  }

  setConnections(count: number): void {
    this.metrics.connections.set(count)
  }
}

/** Counts lines, and those of each second beyond the limit. Those of a last second are not logged at the end of the process. */
class LineLimit {
  private lines = 0

  /** `onMore` is called at the end of a second, with the number of lines beyond the limit. */
  constructor(private readonly onMore: (more: number) => void) {}

  /** Counts a line. Returns whether it is within the limit. */
  take(): boolean {
    if (this.lines === 0) setTimeout(() => this.endSecond(), SECOND_MS).unref()
    this.lines += 1
    return this.lines <= MAX_LINES_PER_SECOND
  }

  private endSecond(): void {
    if (this.lines > MAX_LINES_PER_SECOND) this.onMore(this.lines - MAX_LINES_PER_SECOND)
    this.lines = 0
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}

/**
 * Records usage events for mails to known inboxes. A mail counts for the key that its sender authenticated with if it
 * is of the inbox's account and environment, otherwise for the key that created the inbox.
 */
export class MailUsage {
  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  accepted(inbox: Inbox, senderKey: SenderKey | null, acceptMs: number): void {
    const times = { ms: [Math.round(acceptMs * 1_000) / 1_000], at: this.now() }
    this.usage.record({ type: 'MailAccepted', ...attributionOf(inbox, senderKey), ...times }, inbox)
  }

  refused(inbox: Inbox, senderKey: SenderKey | null, { reason, code }: Refusal): void {
    const refusal = { inboxId: inbox.id, reason, code, refusedAt: this.now() }
    this.usage.record({ type: 'MailRefused', ...attributionOf(inbox, senderKey), ...refusal }, inbox)
  }
}

function attributionOf(inbox: Inbox, senderKey: SenderKey | null) {
  const { keyId, labels } = inbox
  return { keyId: keyOfSender(senderKey, inbox) ?? keyId, labels }
}

/** The metrics of the SMTP edge. The labels are bounded: replies.ts lists the reasons. */
function smtpMetrics(registry: Registry) {
  const make = new Metrics(registry)
  return {
    accepted: make.counter(
      'mayfly_mails_accepted_total',
      'Mails answered with 250, each counted once for all its recipients.',
    ),
    refused: make.counter(
      'mayfly_mails_refused_total',
      'Commands and mails answered with 4yz or 5yz, by reason and code. Without a code, the connection was closed.',
      ['reason', 'code'],
    ),
    discarded: make.counter(
      'mayfly_recipients_discarded_total',
      'Recipients in other domains whose mail was accepted and dropped (MAYFLY_UNKNOWN_RECIPIENTS).',
    ),
    bytes: make.counter('mayfly_mail_accepted_bytes_total', 'Bytes of accepted mails.'),
    partial: make.counter(
      'mayfly_smtp_partial_appends_total',
      "Mails answered with 451 although some recipients' records are durable: a retry duplicates those.",
    ),
    acceptSeconds: make.histogram(
      'mayfly_mail_accept_seconds',
      "Time from a mail's last byte to its 250.",
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
    ),
    connections: make.gauge('mayfly_smtp_connections', 'Open SMTP connections.'),
  }
}
