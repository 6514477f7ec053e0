import type { Logger } from 'pino'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { IncomingMail } from './mail-data.js'
import type { RefusalReason, Refusal } from './replies.js'
import { fingerprintOf, type SecretKey } from '#libs/ports/key-vault/content.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import type { UsageRecorder } from '#libs/ports/usage/usage-recorder.js'
import { keyOfSender, type SenderKey } from './smtp-auth.js'

/** Whose session a line is about. */
export interface SessionMark {
  id: string
  remoteAddress: string
}

const MAX_IDS = 20

/** Past so many within a second refusals are only counted: a flood must not fill a disk with log lines. */
const MAX_REFUSALS_A_SECOND = 100
const SECOND_MS = 1_000

/** One wide log line and one count for each mail and each refusal. No content, no addresses. */
export class Journal {
  private second = { beganAtMs: 0, refusals: 0 }

  private readonly metrics: ReturnType<typeof metricsIn>

  constructor(
    private readonly logger: Logger,
    registry: Registry,
  ) {
    this.metrics = metricsIn(registry)
  }

  mailAccepted(
    { id, remoteAddress }: SessionMark,
    { raw, recipients, trace }: IncomingMail,
    messageIds: readonly MessageId[],
    { receiveMs, acceptMs }: { receiveMs: number; acceptMs: number },
  ): void {
    this.metrics.accepted.inc()
    this.metrics.bytes.inc(raw.length)
    this.metrics.acceptSeconds.observe(acceptMs / 1000)
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
    this.metrics.discarded.inc(recipients)
    this.logger.info({ connectionId: id, remoteAddress, recipients, bytes }, 'recipients discarded')
  }

  /** Any answer 4yz or 5yz; `code` is null if the client had left. */
  refused({ id, remoteAddress }: SessionMark, reason: RefusalReason, code: number | null): void {
    this.metrics.refused.inc({ reason })
    if (reason === 'partial-append') this.metrics.partial.inc()
    const isOurs = reason === 'partial-append' || reason === 'log-unavailable' || reason === 'internal-error'
    if (!isOurs && !this.mayLog()) return
    this.logger[isOurs ? 'warn' : 'info']({ connectionId: id, remoteAddress, reason, code }, 'refused')
  }

  private mayLog(): boolean {
    const nowMs = performance.now()
    if (nowMs - this.second.beganAtMs > SECOND_MS) {
      const untold = this.second.refusals - MAX_REFUSALS_A_SECOND
      if (untold > 0) this.logger.warn({ untold }, 'refused so many more within a second')
      this.second = { beganAtMs: nowMs, refusals: 0 }
    }
    this.second.refusals += 1
    return this.second.refusals <= MAX_REFUSALS_A_SECOND
  }

  /** A fault on this side, or a bug: logged in addition to the refusal that it leads to. */
  failed(error: unknown): void {
    this.logger.error({ err: error }, 'smtp edge failed')
  }

  /** A socket error, which is the client's affair. */
  connectionBroke(error: unknown): void {
    this.logger.debug({ err: error }, 'connection broke')
  }

  connectionsAre(count: number): void {
    this.metrics.connections.set(count)
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}

/** What the SMTP edge counts. Labels are bounded: reasons are those of replies.ts. */
function metricsIn(registry: Registry) {
  const registers = [registry]
  return {
    accepted: new Counter({
      name: 'mayfly_mails_accepted_total',
      help: 'Mails answered with 250, each counted once whatever its recipients.',
      registers,
    }),
    refused: new Counter({
      name: 'mayfly_mails_refused_total',
      help: 'Commands and mails answered with 4yz or 5yz, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    discarded: new Counter({
      name: 'mayfly_recipients_discarded_total',
      help: 'Recipients of other domains whose mail was accepted and dropped (MAYFLY_UNKNOWN_RECIPIENTS).',
      registers,
    }),
    bytes: new Counter({
      name: 'mayfly_mail_accepted_bytes_total',
      help: 'Bytes of accepted mails.',
      registers,
    }),
    partial: new Counter({
      name: 'mayfly_smtp_partial_appends_total',
      help: "Mails answered with 451 though some recipients' records are durable: a retry doubles those.",
      registers,
    }),
    acceptSeconds: new Histogram({
      name: 'mayfly_mail_accept_seconds',
      help: "Time from a mail's last byte to its 250.",
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
      registers,
    }),
    connections: new Gauge({
      name: 'mayfly_smtp_connections',
      help: 'Open SMTP connections.',
      registers,
    }),
  }
}

/** How far Message-ID is searched for: senders put it among the first header fields. */
const HEAD_BYTES = 64 * 1024
/** RFC 5322, section 3.6.4, folded or not (section 2.2.3). */
const MESSAGE_ID = /^message-id:((?:.*)(?:\r?\n[ \t].*)*)/im

interface AcceptedCopy {
  inbox: Inbox
  key: SecretKey
  messageId: MessageId
}

/**
 * Records what became of mails for known inboxes. A mail counts for the key that its sender authenticated with, if that
 * shares the inbox's account and environment, else for the key that made the inbox.
 */
export class MailUsage {
  constructor(
    private readonly usage: Pick<UsageRecorder, 'record'>,
    private readonly now: () => Date,
  ) {}

  accepted(
    { inbox, key, messageId }: AcceptedCopy,
    mail: { senderKey: SenderKey | null; identity: string | null; size: number; acceptMs: number },
  ) {
    const { senderKey, identity, size, acceptMs } = mail
    this.usage.record(
      {
        type: 'MailAccepted',
        ...aboutOf(inbox, senderKey),
        messageId,
        size,
        acceptMs: Math.round(acceptMs * 1_000) / 1_000,
        fingerprint: identity === null ? null : fingerprintOf(key, `message-id:${inbox.id}`, identity),
        acceptedAt: this.now(),
      },
      inbox,
    )
  }

  refused(inbox: Inbox, senderKey: SenderKey | null, { reason, code }: Refusal): void {
    this.usage.record(
      { type: 'MailRefused', ...aboutOf(inbox, senderKey), reason, code, refusedAt: this.now() },
      inbox,
    )
  }
}

function aboutOf(inbox: Inbox, senderKey: SenderKey | null) {
  const { id: inboxId, keyId, labels } = inbox
  return { keyId: keyOfSender(senderKey, inbox) ?? keyId, inboxId, labels }
}

/** What a sender knows a mail by; null if it says nothing. */
export function identityOf(raw: Buffer): string | null {
  const start = raw.toString('latin1', 0, HEAD_BYTES)
  const end = /\r?\n\r?\n/.exec(start)?.index ?? start.length
  const [, value = ''] = MESSAGE_ID.exec(start.slice(0, end)) ?? []
  const identity = value.replaceAll(/\r?\n/g, '').trim()
  return identity === '' ? null : identity
}
