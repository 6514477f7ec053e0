/** Why a command or a mail was not taken: bounded, so that it can label a metric. */
export type RefusalReason =
  | 'unknown-recipient'
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
  | 'too-many-errors'
  | 'command-too-long'
  | 'too-many-recipients'
  | 'protocol-error'
  | 'disconnected'
  | 'timeout'
  | 'shutting-down'
  | 'internal-error'

/**
 * An expected answer in the form that smtp-server takes it. The text begins with its enhanced status code (RFC
 * 3463). Made once for each reason: an Error's stack costs more than the look-up that leads to it.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal'

  constructor(
    readonly reason: RefusalReason,
    readonly responseCode: number,
    text: string,
  ) {
    super(text)
  }
}

/** Every refusal of the edge; API.md, section SMTP. */
export const REFUSALS = {
  unknownRecipient: new Refusal('unknown-recipient', 550, '5.1.1 no such inbox'),
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
  tooManyErrors: new Refusal('too-many-errors', 421, '4.7.0 too many errors'),
  commandTooLong: new Refusal('command-too-long', 500, '5.5.2 the command line is too long'),
  timeout: new Refusal('timeout', 421, '4.4.2 that took too long'),
  shuttingDown: new Refusal('shutting-down', 421, '4.3.2 shutting down'),
  internalError: new Refusal('internal-error', 451, '4.3.0 internal error'),
} as const

const REASONS: ReadonlyMap<string, RefusalReason> = new Map(
  Object.values(REFUSALS).map(({ message, reason }) => [message, reason]),
)

/** The reason behind a reply, also where smtp-server words it. */
export function reasonOf(code: number, text: string): RefusalReason {
  const reason = REASONS.get(text)
  if (reason !== undefined) return reason
  if (code === 552) return 'message-too-large'
  if (code === 452) return 'too-many-recipients'
  if (code === 421 && text.startsWith('Timeout')) return 'timeout'
  return 'protocol-error'
}

const MOST_REPLY_BYTES = 512

/**
 * The text behind 250: the ids of the mail's records, in the order of its recipients, as many as a reply line
 * holds (RFC 5321, section 4.5.3.1.5).
 */
export function acceptedText(messageIds: readonly string[]): string {
  let text = '2.0.0'
  for (const id of messageIds) {
    if ('250 '.length + text.length + 1 + id.length + '\r\n'.length > MOST_REPLY_BYTES) break
    text += ` ${id}`
  }
  return text
}
