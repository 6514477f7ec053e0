import type { EndedInbox } from '#libs/domain/inbox/inbox.js'

/**
 * Every refusal of the edge, as docs/smtp.md lists them: its reason, code and text, and whether the session ends after
 * it.
 */
const REFUSED = {
  unknownRecipient: ['unknown-recipient', 550, '5.1.1 no inbox has this address'],
  domainLapsed: ['domain-lapsed', 451, '4.1.2 the DNS records of this domain are missing, try again later'],
  domainLost: ['domain-lapsed', 550, '5.1.2 the DNS records of this domain are missing'],
  /** The inbox's key is deleted, but the views don't show its end yet. */
  inboxEnded: ['inbox-ended', 550, '5.1.1 this inbox has expired or was deleted'],
  inboxFull: ['inbox-full', 552, '5.2.2 the inbox is full'],
  quotaExceeded: ['quota-exceeded', 452, '4.2.2 the account has used up a quota: delete mail or inboxes'],
  accountSuspended: ['account-suspended', 550, '5.2.1 the account of this inbox is suspended'],
  tooLarge: ['message-too-large', 552, '5.3.4 the message exceeds the size limit'],
  bareLineBreak: ['bare-line-break', 554, '5.6.0 bare CR or LF: lines end in CRLF (RFC 5321, 2.3.8)'],
  catchingUp: ['catching-up', 451, '4.3.0 the views are being rebuilt, try again later'],
  behind: ['behind', 451, '4.3.0 too many mails are being processed, try again later'],
  recipientsChanged: ['recipients-changed', 451, '4.3.0 a recipient changed meanwhile, try again'],
  logUnavailable: ['log-unavailable', 451, '4.3.0 the mail could not be stored, try again later'],
  partialAppend: ['partial-append', 451, '4.3.0 not stored for every recipient, try again later'],
  readModelUnavailable: ['read-model-unavailable', 451, '4.3.0 the inbox cannot be looked up now'],
  tooManyTags: ['too-many-recipients', 452, '4.5.3 too many recipients of one inbox'],
  tooManyNewInboxes: ['too-many-new-inboxes', 452, '4.7.0 too many new inboxes, try again later'],
  memoryFull: ['memory-full', 451, '4.3.1 too much mail is being received, try again later'],
  tooManyConnections: ['too-many-connections', 421, '4.7.0 too many connections, try again later'],
  tooManyConnectionsPerMinute: [
    'too-many-connections-per-minute',
    421,
    '4.7.0 too many connections within a minute, try again later',
  ],
  tooManyCommands: ['too-many-commands', 421, '4.7.0 too many commands without a mail'],
  tooManyUnknown: ['too-many-unknown-recipients', 421, '4.7.0 too many unknown recipients'],
  closedWhileCrowded: ['timeout', 421, '4.7.0 too many connections, and no mail on this one for too long'],
  tooManyErrors: ['too-many-errors', 421, '4.7.0 too many errors'],
  tooManyRecipients: ['too-many-recipients', 452, '4.5.3 too many recipients'],
  notPlain: ['protocol-error', 500, '5.5.2 commands are printable ASCII and end in CRLF (RFC 5321, 2.3.8)'],
  unknownCommand: ['protocol-error', 500, '5.5.2 unknown command'],
  httpRequest: ['protocol-error', 421, '4.4.2 this is an SMTP server, not HTTP'],
  // Replies to HELO and EHLO have no enhanced status code (RFC 2034, section 4).
  wrongHelo: ['protocol-error', 501, 'wrong syntax: HELO hostname'],
  wrongEhlo: ['protocol-error', 501, 'wrong syntax: EHLO hostname'],
  wrongHostname: ['protocol-error', 501, 'the hostname is invalid'],
  needsHello: ['protocol-error', 503, '5.5.1 send HELO/EHLO first'],
  wrongVrfy: ['protocol-error', 501, '5.5.4 wrong syntax: VRFY address'],
  wrongStartTls: ['protocol-error', 501, '5.5.4 wrong syntax: STARTTLS'],
  tlsActive: ['protocol-error', 503, '5.5.1 TLS is already active'],
  wrongSender: ['protocol-error', 501, '5.1.7 wrong syntax: MAIL FROM:<address> [parameters]'],
  wrongRecipient: ['protocol-error', 501, '5.1.3 wrong syntax: RCPT TO:<address>'],
  nestedMail: ['protocol-error', 503, '5.5.1 MAIL FROM was already sent'],
  needsMail: ['protocol-error', 503, '5.5.1 need MAIL command'],
  // No error: a client that pipelines sends DATA before it knows that all recipients are refused (RFC 2920, section 3.1).
  needsRecipient: ['no-recipients', 503, '5.5.1 need RCPT command'],
  wrongParameter: ['protocol-error', 501, '5.5.4 a parameter is repeated or invalid'],
  unknownParameter: ['protocol-error', 555, '5.5.4 a parameter belongs to an extension that is not offered'],
  needsSmtpUtf8: ['protocol-error', 553, '5.6.7 a non-ASCII address needs SMTPUTF8 (RFC 6531)'],
  authNotOffered: ['not-offered', 502, '5.5.1 AUTH is not offered; send without it'],
  authNeedsTls: ['tls-required', 538, '5.7.11 AUTH needs TLS, since the password is an API key'],
  authenticatedAlready: ['protocol-error', 503, '5.5.1 already authenticated'],
  unknownMechanism: ['protocol-error', 504, '5.5.4 this AUTH mechanism is not offered'],
  wrongAuth: ['protocol-error', 501, '5.5.4 wrong syntax: AUTH mechanism [initial-response]'],
  authAborted: ['protocol-error', 501, '5.5.4 the client aborted AUTH'],
  wrongCredentials: ['protocol-error', 501, '5.5.4 the credentials cannot be decoded'],
  invalidCredentials: ['invalid-credentials', 535, '5.7.8 the password is not a valid API key'],
  authUnavailable: ['auth-unavailable', 454, '4.7.0 the API key cannot be checked now, try again'],
  startTlsNotOffered: ['not-offered', 502, '5.5.1 STARTTLS is not offered (MAYFLY_SMTP_TLS is off)'],
  expnNotOffered: ['not-offered', 502, '5.5.1 EXPN is not offered'],
  chunkingNotOffered: ['not-offered', 502, '5.5.1 BDAT is not offered, and its bytes are not read', true],
  tlsRequired: ['tls-required', 530, '5.7.0 Must issue a STARTTLS command first'],
  commandTooLong: ['command-too-long', 500, '5.5.2 the command line is too long'],
  clientLeft: ['disconnected', 451, '4.4.2 the client has disconnected'],
  timeout: ['timeout', 421, '4.4.2 the client took too long'],
  idle: ['timeout', 421, '4.4.2 no command for too long'],
  shuttingDown: ['shutting-down', 421, '4.3.2 shutting down'],
  internalError: ['internal-error', 451, '4.3.0 internal error'],
} as const

/** Why a command or a mail was refused. A bounded set, because it labels a metric. */
export type RefusalReason =
  | (typeof REFUSED)[keyof typeof REFUSED][0]
  | 'fault-on-purpose'
  | 'handshake-failed'
  | 'malformed-proxy-header'

/** A reply 4yz or 5yz. Its text starts with the enhanced status code (RFC 3463), if the reply has one. */
export class Refusal {
  readonly line: string

  constructor(
    readonly reason: RefusalReason,
    readonly code: number,
    readonly text: string,
    /** Whether the session ends after the reply. */
    readonly isLast = code === 421,
  ) {
    this.line = `${code} ${text}\r\n`
  }
}

export type Answer = string | Refusal

export type MaybePromise<Value> = Value | Promise<Value>

export const REFUSALS = Object.fromEntries(
  Object.entries(REFUSED).map(([name, [reason, code, text, isLast]]) => [
    name,
    new Refusal(reason, code, text, isLast),
  ]),
) as Record<keyof typeof REFUSED, Refusal>

/** The inbox has ended. The reply says when, to tell it from a mistyped address. */
export function inboxEndedAt({ state, endedAt }: Pick<EndedInbox, 'state' | 'endedAt'>): Refusal {
  const ended = state === 'expired' ? 'expired' : 'was deleted'
  return new Refusal('inbox-ended', 550, `5.1.1 this inbox ${ended} at ${endedAt.toISOString()}`)
}

/** The recipient is in a domain that this server does not accept mail for. */
export function foreignRecipient(domains: readonly string[]): Refusal {
  const own = domains.join(' and ')
  const text = `5.1.1 no inbox has this address: this server accepts mail for ${own} only, and domains of its accounts`
  return new Refusal('unknown-recipient', 550, text)
}

/** The client sent a command before the greeting, so it does not wait for replies (RFC 5321, section 4.3.1). */
export function spokeTooEarly(mailDomain: string): Refusal {
  return new Refusal('protocol-error', 421, `${mailDomain} wait for the greeting before sending`)
}

/** The positive replies. */
export const REPLIES = {
  senderAccepted: '250 2.1.0 Accepted\r\n',
  recipientAccepted: '250 2.1.5 Accepted\r\n',
  startMail: '354 end the mail with <CRLF>.<CRLF>\r\n',
  flushed: '250 2.0.0 reset\r\n',
  ok: '250 2.0.0 OK\r\n',
  help: '214 2.0.0 see RFC 5321\r\n',
  notVerified: '252 2.1.5 not verified: send a mail to find out\r\n',
  readyForTls: '220 2.0.0 ready to start TLS\r\n',
  authenticated: '235 2.7.0 authenticated\r\n',
  bye: '221 2.0.0 bye\r\n',
} as const

const MAX_REPLY_BYTES = 512

/**
 * The reply to an accepted mail: its message ids, in the order of the recipients, as many as fit into a reply line
 * (RFC 5321, section 4.5.3.1.5).
 */
export function mailAccepted(messageIds: readonly string[]): string {
  if (messageIds.length === 0) return '250 2.0.0 discarded: no recipient has an inbox here\r\n'
  let text = '250 2.0.0'
  for (const id of messageIds) {
    if (text.length + 1 + id.length + '\r\n'.length > MAX_REPLY_BYTES) break
    text += ` ${id}`
  }
  return `${text}\r\n`
}
