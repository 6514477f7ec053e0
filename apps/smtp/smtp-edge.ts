import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Settings } from '#libs/config/settings.js'
import type { Engine } from '#libs/engine/engine.js'
import { Recorder } from '#libs/event-log/recorder.js'
import { measuredUsage } from '#libs/process/measured-usage.js'
import { listenError } from '#libs/process/listen-error.js'
import { Acceptance } from './acceptance.js'
import { Authenticator } from './authenticator.js'
import { BacklogWatch } from './backlog-watch.js'
import { loadCertificate } from './certificate.js'
import { Journal } from './journal.js'
import { MailUsage } from './mail-usage.js'
import { MemoryBudget } from './memory-budget.js'
import { SmtpMetrics } from './metrics.js'
import { Recipients } from './recipients.js'
import { EdgeServer } from './server.js'

export interface SmtpEdgeOptions {
  engine: Pick<Engine, 'log' | 'vault' | 'inboxes'>
  settings: Settings
  /** Where the self-signed certificate is kept. */
  tlsFolder: string
  logger: Logger
  registry: Registry
  now: () => Date
}

export interface SmtpEdge {
  port: number
  /**
   * Takes no new connections, closes the idle ones with 421, lets mails under way come to their end. Resolves
   * once all are closed, within 20 seconds. Harmless to repeat.
   */
  drain(): Promise<void>
}

const DRAIN_MS = 20_000
/** Of the memory for mail: sealed copies on their way to the log, beside the mails that they are made from. */
const SEALED_SHARE = 4

/**
 * The SMTP edge: takes mail for active inboxes and puts it on the log.
 *
 * It consumes SMTP (RFC 5321) with PIPELINING, SIZE, 8BITMIME, SMTPUTF8, ENHANCEDSTATUSCODES and STARTTLS.
 * MAIL FROM is refused while the views are too far behind or memory is full; RCPT TO is judged against the
 * views; the mail is read under its limits, judged whom it is from where that is wanted, sealed with each recipient's
 * key, and a MessageReceived appended for each. 250 is said once they are durable. It emits those events, a log line and counts for each mail.
 *
 * Resolves once it listens. Rejects, with the variable to look at, where it can't listen or the certificate can't be used.
 */
export async function startSmtp(options: SmtpEdgeOptions): Promise<SmtpEdge> {
  // Closes in reverse order, each of them whatever became of the others.
  const opened = new AsyncDisposableStack()
  let draining: Promise<void> | null = null
  try {
    const { port } = await listen(options, opened)
    return { port, drain: () => (draining ??= opened.disposeAsync()) }
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function listen(options: SmtpEdgeOptions, opened: AsyncDisposableStack): Promise<AddressInfo> {
  const { engine, settings, now } = options
  const journal = new Journal(options.logger, new SmtpMetrics(options.registry))
  const onError = (error: unknown) => journal.failed(error)

  const recorded = measuredUsage({ log: engine.log, source: '/mayfly/smtp', ...options })
  opened.defer(() => recorded.close())
  const usage = new MailUsage(recorded, now)
  const recipients = new Recipients({
    usage,
    log: engine.log,
    inboxes: engine.inboxes,
    backlog: new BacklogWatch(engine.log, engine.inboxes),
    mailDomain: settings.mailDomain,
    maxBacklog: settings.maxBacklog,
    now,
    onError,
  })
  const authenticator = settings.mailAuthentication
    ? new Authenticator({ dnsServers: settings.dnsServers, onError })
    : null
  opened.defer(() => authenticator?.close())
  const acceptance = new Acceptance({
    vault: engine.vault,
    inboxes: engine.inboxes,
    usage,
    recorder: new Recorder(engine.log, '/mayfly/smtp', now),
    authenticator,
    sealedBytes: new MemoryBudget(settings.smtpMemoryBytes / SEALED_SHARE),
    now,
    onError,
  })
  const certificate = await loadCertificate({
    certPath: settings.smtpTlsCert,
    keyPath: settings.smtpTlsKey,
    folder: options.tlsFolder,
    domain: settings.mailDomain,
    now,
  })

  const server = new EdgeServer({ settings, certificate, recipients, acceptance, journal, usage })
  const listening = server.listen(settings.smtpPort, settings.smtpHost)
  await once(listening, 'listening').catch((error: unknown) => {
    throw listenError(error, { host: 'MAYFLY_SMTP_HOST', port: 'MAYFLY_SMTP_PORT' })
  })
  const address = listening.address()
  if (address === null || typeof address === 'string') throw new Error('the SMTP edge listens on no port')
  opened.defer(() => server.drain(DRAIN_MS))
  return address
}
