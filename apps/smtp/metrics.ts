import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { RefusalReason } from './replies.js'

/** What the SMTP edge counts. Labels are bounded: reasons are those of replies.ts. */
export class SmtpMetrics {
  private readonly accepted: Counter
  private readonly refused: Counter<'reason'>
  private readonly discarded: Counter
  private readonly bytes: Counter
  private readonly partial: Counter
  private readonly acceptSeconds: Histogram
  private readonly connections: Gauge

  constructor(registry: Registry) {
    const registers = [registry]
    this.accepted = new Counter({
      name: 'mayfly_mails_accepted_total',
      help: 'Mails answered with 250, each counted once whatever its recipients.',
      registers,
    })
    this.refused = new Counter({
      name: 'mayfly_mails_refused_total',
      help: 'Commands and mails answered with 4yz or 5yz, by reason.',
      labelNames: ['reason'],
      registers,
    })
    this.discarded = new Counter({
      name: 'mayfly_recipients_discarded_total',
      help: 'Recipients of other domains whose mail was accepted and dropped (MAYFLY_UNKNOWN_RECIPIENTS).',
      registers,
    })
    this.bytes = new Counter({
      name: 'mayfly_mail_accepted_bytes_total',
      help: 'Bytes of accepted mails.',
      registers,
    })
    this.partial = new Counter({
      name: 'mayfly_smtp_partial_appends_total',
      help: "Mails answered with 451 though some recipients' records are durable: a retry doubles those.",
      registers,
    })
    this.acceptSeconds = new Histogram({
      name: 'mayfly_mail_accept_seconds',
      help: "Time from a mail's last byte to its 250.",
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
      registers,
    })
    this.connections = new Gauge({
      name: 'mayfly_smtp_connections',
      help: 'Open SMTP connections.',
      registers,
    })
  }

  mailAccepted(bytes: number, acceptMs: number): void {
    this.accepted.inc()
    this.bytes.inc(bytes)
    this.acceptSeconds.observe(acceptMs / 1000)
  }

  recipientsDiscarded(count: number): void {
    this.discarded.inc(count)
  }

  refusedFor(reason: RefusalReason): void {
    this.refused.inc({ reason })
    if (reason === 'partial-append') this.partial.inc()
  }

  connectionsAre(count: number): void {
    this.connections.set(count)
  }
}
