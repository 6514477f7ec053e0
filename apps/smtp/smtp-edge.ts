import { once } from 'node:events'
import type { Server } from 'node:net'
import type { PlanTable } from '#libs/domain/account/access.js'
import type { Engine } from '#libs/engines/engine.js'
import { Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import { AccountQuotas } from '#libs/ports/read-model/account-quotas.js'
import { ConsistentViews } from '#libs/ports/read-model/consistent-views.js'
import { measuredUsage } from '#libs/role/measured-usage.js'
import { RecipientDomains } from '#libs/role/recipient-domains.js'
import { RefusedMailSender } from '#libs/role/refused-mail.js'
import type { EngineContext } from '#libs/role/run-role.js'
import { budgetScale } from '#libs/runtime/config/memory-settings.js'
import { countExhausted } from '#libs/runtime/fairness/budget.js'
import { engineName } from '#libs/runtime/process/build-info.js'
import { listenError } from '#libs/runtime/process/listen-error.js'
import { Acceptance } from './acceptance.js'
import { AutoInboxes } from './auto-inboxes.js'
import { SenderVerifier } from './sender-verifier.js'
import { loadCertificate } from './certificate.js'
import { MailFaults } from './faults.js'
import { Journal, MailUsage } from './journal.js'
import { Recipients } from './recipients.js'
import { EdgeServer } from './server.js'
import { UnknownRecipients } from './session-bounds.js'
import { SmtpAuth } from './smtp-auth.js'
import { InFlightMail } from './in-flight-mail.js'

export interface SmtpEdgeOptions extends Omit<EngineContext, 'engine'> {
  engine: Pick<Engine, 'log' | 'vault' | 'inboxes' | 'accounts' | 'signals' | 'limits' | 'idempotency'> & {
    keyUse: Pick<KeyUse, 'touch'>
  }
  plans: PlanTable
  /** The folder of the self-signed certificate and its authority. */
  tlsFolder: string
}

export interface SmtpEdge {
  port: number
  /** The port with implicit TLS; null if there is none. */
  tlsPort: number | null
  /**
   * PEM file of the authority that clients must trust for TLS; null if TLS is off or the certificate is the
   * operator's.
   */
  caFile: string | null
  /** The domains that belong to nobody whose mail makes inboxes, in words; null if there are none. */
  caughtDomains: string | null
}

/** The fields of the log line about the ports that a process listens on. */
export function listeningFacts({ port, tlsPort, caFile }: SmtpEdge): Record<string, string | number> {
  return {
    smtpPort: port,
    ...(tlsPort !== null && { smtpsPort: tlsPort }),
    ...(caFile !== null && { smtpCaFile: caFile }),
  }
}

/** Closing accepts no new connections, closes idle ones with 421, and lets mails in progress finish within this time. */
const DRAIN_MS = 20_000
/** Sealed copies that the views don't show yet may use another quarter of the memory for mail. */
const IN_FLIGHT_DIVISOR = 4

/**
 * The SMTP edge: accepts mail for active inboxes and appends it to the log.
 *
 * It speaks SMTP (RFC 5321) with PIPELINING, SIZE, 8BITMIME, SMTPUTF8, ENHANCEDSTATUSCODES, and, depending on the
 * settings, STARTTLS, implicit TLS on a second port, and AUTH. MAIL FROM is refused while the views are too far
 * behind or memory is full. RCPT TO is looked up in the views. The mail is read within its limits, its sender is
 * verified if that is enabled, and for each recipient the mail is sealed with the inbox's key and appended as a
 * MessageReceived. 250 is sent once these events are durable. Each mail is also logged and counted.
 *
 * Resolves once it listens. Rejects with the name of the setting if it can't listen or use the certificate.
 */
export async function startSmtp(options: SmtpEdgeOptions): Promise<SmtpEdge> {
  const { settings, plans, now, running } = options
  const { log, vault, inboxes, accounts, signals, limits, idempotency, keyUse } = options.engine
  const journal = new Journal(options.logger, options.registry)
  const onError = (error: unknown) => journal.failed(error)
  const exhausted = countExhausted(options.registry)

  const recorded = measuredUsage({ log, source: '/mayfly/smtp', ...options })
  running.defer(() => recorded.close())
  const usage = new MailUsage(recorded, now)
  const views = new ConsistentViews(log, inboxes, signals)
  const { maxMessageBytes } = settings
  const quotas = new AccountQuotas({ log, views, inboxes, accounts, plans, maxMessageBytes, now })
  const domains = new RecipientDomains({ log, accounts, views, settings })
  const isEmbedded = engineName(settings) === 'embedded'
  const refusedMail = new RefusedMailSender({ signals, domains, isEmbedded, now, onError })
  running.defer(() => refusedMail.close())
  const recipients = new Recipients({
    ...{ log, inboxes, views, domains, usage, quotas, refusedMail, settings, now, onError },
  })
  const verifier = settings.mailAuthentication
    ? new SenderVerifier({
        dnsServers: settings.dnsServers,
        memoryScale: budgetScale(settings),
        onExhausted: () => exhausted('authentication'),
        onError,
      })
    : null
  running.defer(() => verifier?.close())
  const inFlight = new InFlightMail({
    inboxes,
    signals,
    maxBytes: settings.smtpMemoryBytes / IN_FLIGHT_DIVISOR,
    onExhausted: () => exhausted('unshown-mail'),
  })
  running.defer(() => inFlight.close())
  const recorder = new Recorder(log, '/mayfly/smtp', now)
  const faults = new MailFaults({ limits, registry: options.registry, now, onError })
  const shared = { vault, inboxes, recorder, quotas, now, onError }
  const acceptance = new Acceptance({ ...shared, usage, faults, verifier, inFlight })
  const autoInboxes = new AutoInboxes({
    ...shared,
    ...{ accounts, views, domains, idempotency, limits, settings, plans },
  })
  const certificate = await loadCertificate({ settings, folder: options.tlsFolder, now })
  const auth = new SmtpAuth({ settings, accounts, views, keyUse, now, onError })

  const server = new EdgeServer(certificate, {
    ...{ settings, auth, recipients, faults, acceptance, autoInboxes, journal, usage, refusedMail },
    unknownRecipients: new UnknownRecipients(),
  })
  running.defer(() => server.drain(DRAIN_MS))
  const { smtpHost, smtpPort, smtpsPort, acceptDomains } = settings
  const port = await listeningPort(server.listen(smtpPort, smtpHost), 'MAYFLY_SMTP_PORT')
  const tlsPort =
    smtpsPort === null
      ? null
      : await listeningPort(server.tlsServer.listen(smtpsPort, smtpHost), 'MAYFLY_SMTPS_PORT')
  return {
    port,
    tlsPort,
    caFile: certificate?.caFile ?? null,
    caughtDomains:
      domains.unknownRecipients === 'create' ? 'any other domain' : (acceptDomains?.join(', ') ?? null),
  }
}

async function listeningPort(server: Server, variable: string): Promise<number> {
  await once(server, 'listening').catch((error: unknown) => {
    throw listenError(error, { host: 'MAYFLY_SMTP_HOST', port: variable })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the SMTP server has no port')
  return address.port
}
