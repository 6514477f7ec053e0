import type { EndedInbox } from '#libs/domain/inbox/inbox.js'

/** Why a command or a mail was refused: bounded, so that it can label a metric. */
export type RefusalReason =
  | 'unknown-recipient'
  | 'inbox-ended'
  | 'inbox-full'
  | 'message-too-large'
  | 'bare-line-break'
  | 'catching-up'
  | 'behind'
  | 'recipients-changed'
  | 'log-unavailable'
  | 'partial-append'
  | 'read-model-unavailable'
  | 'memory-full'
  | 'too-many-connections'
  | 'too-many-connections-per-minute'
  | 'too-many-errors'
  | 'too-many-commands'
  | 'too-many-unknown-recipients'
  | 'command-too-long'
  | 'too-many-recipients'
  | 'protocol-error'
  | 'not-offered'
  | 'tls-required'
  | 'invalid-credentials'
  | 'auth-unavailable'
  | 'handshake-failed'
  | 'malformed-proxy-header'
  | 'disconnected'
  | 'timeout'
  | 'shutting-down'
  | 'internal-error'

/** An expected refusal. Its text begins with the enhanced status code (RFC 3463), if the reply has one. */
export class Refusal {
  /** As it goes over the wire. */
  readonly line: string

  constructor(
    readonly reason: RefusalReason,
    readonly code: number,
    text: string,
    /** Whether the session ends with it. */
    readonly isLast = code === 421,
  ) {
    this.line = `${code} ${text}\r\n`
  }
}

/** What is said to a line of the client. */
export type Answer = string | Refusal

/** A value that is known at once, or a promise of it. */
export type MaybeLater<Value> = Value | Promise<Value>

/** Goes on with a value: at once if it is known, so that most commands are answered without a promise. */
export function whenKnown<Value, Result>(
  value: MaybeLater<Value>,
  goOn: (value: Value) => MaybeLater<Result>,
): MaybeLater<Result> {
  return value instanceof Promise ? value.then(goOn) : goOn(value)
}

function protocolError(code: number, text: string): Refusal {
  return new Refusal('protocol-error', code, text)
}

/** Every refusal of the edge; API.md, section SMTP. */
export const REFUSALS = {
  unknownRecipient: new Refusal('unknown-recipient', 550, '5.1.1 no inbox has this address'),
  /** The inbox's key is gone, though the view does not show its end yet. */
  inboxEnded: new Refusal('inbox-ended', 550, '5.1.1 this inbox has expired or was deleted'),
  inboxFull: new Refusal('inbox-full', 552, '5.2.2 the inbox is full'),
  tooLarge: new Refusal('message-too-large', 552, '5.3.4 the message is larger than this server takes'),
  bareLineBreak: new Refusal(
    'bare-line-break',
    554,
    '5.6.0 bare CR or LF: lines end in CRLF (RFC 5321, 2.3.8)',
  ),
  catchingUp: new Refusal('catching-up', 451, '4.3.0 the views are being rebuilt, try again later'),
  behind: new Refusal('behind', 451, '4.3.0 too many mails are being processed, try again later'),
  recipientsChanged: new Refusal('recipients-changed', 451, '4.3.0 a recipient changed meanwhile, try again'),
  logUnavailable: new Refusal('log-unavailable', 451, '4.3.0 the mail could not be stored, try again later'),
  partialAppend: new Refusal('partial-append', 451, '4.3.0 not stored for every recipient, try again later'),
  readModelUnavailable: new Refusal(
    'read-model-unavailable',
    451,
    '4.3.0 the inbox can not be looked up now',
  ),
  tooManyTags: new Refusal('too-many-recipients', 452, '4.5.3 too many recipients of one inbox'),
  memoryFull: new Refusal('memory-full', 451, '4.3.1 too much mail is under way, try again later'),
  tooManyConnections: new Refusal('too-many-connections', 421, '4.7.0 too many connections, try again later'),
  tooManyConnectionsPerMinute: new Refusal(
    'too-many-connections-per-minute',
    421,
    '4.7.0 too many connections within a minute, try again later',
  ),
  tooManyCommands: new Refusal('too-many-commands', 421, '4.7.0 too many commands without a mail'),
  tooManyUnknown: new Refusal('too-many-unknown-recipients', 421, '4.7.0 too many unknown recipients'),
  closedWhileCrowded: new Refusal(
    'timeout',
    421,
    '4.7.0 too many connections, and no mail from this one for long',
  ),
  tooManyErrors: new Refusal('too-many-errors', 421, '4.7.0 too many errors'),
  tooManyRecipients: new Refusal('too-many-recipients', 452, '4.5.3 too many recipients'),
  notPlain: protocolError(500, '5.5.2 commands are printable ASCII and end in CRLF (RFC 5321, 2.3.8)'),
  unknownCommand: protocolError(500, '5.5.2 Error: command not recognized'),
  httpRequest: protocolError(421, '4.4.2 HTTP requests not allowed'),
  // Replies to HELO and EHLO have no enhanced status code (RFC 2034, section 4).
  wrongHelo: protocolError(501, 'Error: Syntax: HELO hostname'),
  wrongEhlo: protocolError(501, 'Error: syntax: EHLO hostname'),
  wrongHostname: protocolError(501, 'Error: Bad hostname syntax'),
  needsHello: protocolError(503, '5.5.1 Error: send HELO/EHLO first'),
  wrongVrfy: protocolError(501, '5.5.4 Error: Syntax: VRFY address'),
  wrongStartTls: protocolError(501, '5.5.4 Error: syntax: STARTTLS'),
  tlsActive: protocolError(503, '5.5.1 Error: TLS already active'),
  wrongSender: protocolError(501, '5.1.7 wrong syntax: MAIL FROM:<address> [parameters]'),
  wrongRecipient: protocolError(501, '5.1.3 wrong syntax: RCPT TO:<address>'),
  nestedMail: protocolError(503, '5.5.1 there is a MAIL FROM already'),
  needsMail: protocolError(503, '5.5.1 need MAIL command'),
  needsRecipient: protocolError(503, '5.5.1 need RCPT command'),
  wrongParameter: protocolError(501, '5.5.4 a parameter is given twice, or wrongly'),
  unknownParameter: protocolError(555, '5.5.4 a parameter is of an extension not offered'),
  needsSmtpUtf8: protocolError(553, '5.6.7 an address beyond ASCII needs SMTPUTF8 (RFC 6531)'),
  authNotOffered: new Refusal('not-offered', 502, '5.5.1 AUTH is not offered; send without it'),
  authNeedsTls: new Refusal('tls-required', 538, '5.7.11 AUTH needs TLS, since the password is an API key'),
  authenticatedAlready: protocolError(503, '5.5.1 Error: No identity changes permitted'),
  unknownMechanism: protocolError(504, '5.5.4 Error: Unrecognized authentication type'),
  wrongAuthPlain: protocolError(501, '5.5.4 Error: syntax: AUTH PLAIN token'),
  wrongAuthLogin: protocolError(501, '5.5.4 Error: syntax: AUTH LOGIN'),
  authAborted: protocolError(501, '5.5.4 Authentication aborted'),
  wrongCredentials: protocolError(501, '5.5.4 Error: invalid userdata'),
  missingUsername: protocolError(501, '5.5.4 Error: missing username'),
  invalidCredentials: new Refusal('invalid-credentials', 535, '5.7.8 the password is not a valid API key'),
  authUnavailable: new Refusal('auth-unavailable', 454, '4.7.0 the API key cannot be checked now, try again'),
  startTlsNotOffered: new Refusal(
    'not-offered',
    502,
    '5.5.1 STARTTLS is not offered (MAYFLY_SMTP_TLS is off)',
  ),
  expnNotOffered: new Refusal('not-offered', 502, '5.5.1 EXPN is not offered'),
  chunkingNotOffered: new Refusal(
    'not-offered',
    502,
    '5.5.1 BDAT is not offered, and its bytes are not read',
    true,
  ),
  tlsRequired: new Refusal('tls-required', 530, '5.7.0 Must issue a STARTTLS command first'),
  commandTooLong: new Refusal('command-too-long', 500, '5.5.2 the command line is too long'),
  timeout: new Refusal('timeout', 421, '4.4.2 that took too long'),
  idle: new Refusal('timeout', 421, '4.4.2 Timeout - closing connection'),
  shuttingDown: new Refusal('shutting-down', 421, '4.3.2 shutting down'),
  internalError: new Refusal('internal-error', 451, '4.3.0 internal error'),
} as const

/** The inbox ended at that time: unlike a mistyped address, it once existed. */
export function inboxEndedAt({ state, endedAt }: Pick<EndedInbox, 'state' | 'endedAt'>): Refusal {
  const ended = state === 'expired' ? 'expired' : 'was deleted'
  return new Refusal('inbox-ended', 550, `5.1.1 this inbox ${ended} at ${endedAt.toISOString()}`)
}

/** The recipient belongs to a domain that is not Mayfly's. */
export function foreignRecipient(mailDomain: string): Refusal {
  const text = `5.1.1 no inbox has this address: this server accepts mail for ${mailDomain} only`
  return new Refusal('unknown-recipient', 550, text)
}

/** Whoever talks before the greeting does not wait for answers (RFC 5321, section 4.3.1). */
export function talkedTooSoon(mailDomain: string): Refusal {
  return protocolError(421, `${mailDomain} You talk too soon`)
}

/** The replies of a session that goes on. */
export const REPLIES = {
  senderAccepted: '250 2.1.0 Accepted\r\n',
  recipientAccepted: '250 2.1.5 Accepted\r\n',
  startMail: '354 End data with <CR><LF>.<CR><LF>\r\n',
  flushed: '250 2.0.0 Flushed\r\n',
  ok: '250 2.0.0 OK\r\n',
  help: '214 2.0.0 See https://tools.ietf.org/html/rfc5321 for details\r\n',
  notVerified: '252 2.1.5 Try to send something. No promises though\r\n',
  readyForTls: '220 2.0.0 Ready to start TLS\r\n',
  authenticated: '235 2.7.0 Authentication successful\r\n',
  bye: '221 2.0.0 Bye\r\n',
} as const

const MAX_REPLY_BYTES = 512

/**
 * The reply to an accepted mail: the ids of its records, in the order of its recipients, as many as fit in a reply line
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
