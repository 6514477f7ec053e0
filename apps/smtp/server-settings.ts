import { constants } from 'node:crypto'
import type { SMTPServerOptions } from 'smtp-server'
import type { Settings } from '#libs/runtime/config/settings.js'
import type { ServerCertificate } from './certificate.js'
import { ConnectionLimits } from './connection-limits.js'
import { MemoryBudget } from './memory-budget.js'
import { UnknownRecipients } from './session-bounds.js'

/* What the settings say, in the words of the server's parts. */

const SWEEP_MS = 1_000

/** What smtp-server is used for: listening, and the context of TLS. */
export function serverOptions(certificate: ServerCertificate | null): SMTPServerOptions {
  return {
    ...(certificate !== null && { cert: certificate.cert, key: certificate.key }),
    minVersion: 'TLSv1.2',
    // A client could ask for one handshake after the other (TLS 1.2).
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // A reply must not wait until the client has acknowledged the one before it.
    noDelay: true,
    logger: false,
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
