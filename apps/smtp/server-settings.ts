import { constants } from 'node:crypto'
import type { SMTPServerOptions } from 'smtp-server'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { SmtpAuth } from './smtp-auth.js'
import type { ServerCertificate } from './certificate.js'
import type { SessionLimits } from './connection-context.js'
import { ConnectionLimits } from './connection-limits.js'
import { MemoryBudget } from './memory-budget.js'
import { Refusal } from './replies.js'
import { UnknownRecipients } from './unknown-recipients.js'

/* What the settings say, in the words of the server's parts. */

/** RFC 5321, section 4.5.3.1.4: 512 octets, and room for the extensions' parameters. */
const MAX_COMMAND_BYTES = 2_048
const SWEEP_MS = 1_000

export function serverOptions(
  settings: Settings,
  certificate: ServerCertificate | null,
  auth: Pick<SmtpAuth, 'isOff' | 'authenticate'>,
): SMTPServerOptions {
  const notOffered = [...(certificate === null ? ['STARTTLS'] : []), ...(auth.isOff ? ['AUTH'] : [])]
  return {
    ...(certificate !== null && { cert: certificate.cert, key: certificate.key }),
    minVersion: 'TLSv1.2',
    // A client could ask for one handshake after the other (TLS 1.2).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    name: settings.mailDomain,
    banner: 'Mayfly',
    heloResponse: '%s',
    logger: false,
    disabledCommands: [...notOffered, 'XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'],
    authMethods: ['PLAIN', 'LOGIN'],
    authOptional: true,
    // Each connection decides whether AUTH is offered.
    allowInsecureAuth: true,
    onAuth: ({ password }, _session, callback) => {
      void auth.authenticate(password ?? '').then((user) => {
        if (user instanceof Refusal) callback(user)
        else callback(null, { user })
      })
    },
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    size: settings.maxMessageBytes,
    maxCommandLength: MAX_COMMAND_BYTES,
    socketTimeout: settings.smtpCommandTimeoutMs,
  }
}

export function connectionLimits(settings: Settings): ConnectionLimits {
  return new ConnectionLimits({
    most: settings.smtpMaxConnections,
    mostPerAddress: settings.smtpMaxConnectionsPerAddress,
    mostPerMinute: settings.smtpMaxConnectionsPerMinute,
    memory: new MemoryBudget(settings.smtpMemoryBytes),
    mostBytesPerAddress: bytesPerAddress(settings),
  })
}

export function unknownRecipients(settings: Settings): UnknownRecipients {
  return new UnknownRecipients({
    most: settings.smtpMaxUnknownRecipients,
    mostPerAddress: settings.smtpMaxUnknownRecipientsPerAddress,
    longestDelayMs: settings.smtpUnknownRecipientDelayMs,
  })
}

export function sessionLimits(settings: Settings): SessionLimits {
  return {
    maxMessageBytes: settings.maxMessageBytes,
    maxRecipients: settings.smtpMaxRecipients,
    commandTimeoutMs: settings.smtpCommandTimeoutMs,
    dataTimeoutMs: settings.smtpDataTimeoutMs,
    handshakeTimeoutMs: settings.smtpHandshakeTimeoutMs,
    bounds: {
      maxErrors: settings.smtpMaxErrors,
      maxIdleCommands: settings.smtpMaxIdleCommands,
      sessionTimeoutMs: settings.smtpSessionTimeoutMs,
      crowdedTimeoutMs: settings.smtpCrowdedTimeoutMs,
    },
    requiresTls: settings.smtpRequireTls,
    offersTls: settings.smtpTls !== 'off',
  }
}

/** Often enough for the shortest of the times that a session may take. */
export function sweepEveryMs(settings: Settings): number {
  const shortestMs = Math.min(
    settings.smtpCommandTimeoutMs,
    settings.smtpCrowdedTimeoutMs,
    settings.smtpHandshakeTimeoutMs,
    settings.smtpSessionTimeoutMs,
  )
  return Math.min(SWEEP_MS, shortestMs / 4)
}

/** At least a mail of the largest size, while its buffer doubles, and whatever the percentage says. */
function bytesPerAddress(settings: Settings): number {
  const { smtpMemoryBytes, smtpMemoryPercentPerAddress, maxMessageBytes } = settings
  return Math.max((smtpMemoryBytes / 100) * smtpMemoryPercentPerAddress, 2 * maxMessageBytes)
}
