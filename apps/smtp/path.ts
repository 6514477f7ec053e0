import { isUtf8 } from 'node:buffer'
import { isIPv4, isIPv6 } from 'node:net'
import { Refusal, REFUSALS } from './replies.js'

/** The reverse-path of MAIL FROM or the forward-path of RCPT TO. */
export interface Path {
  /** The address as sent, without angle brackets and source route; empty for the null reverse-path. */
  address: string
  /** The address with an unquoted local part: quotes don't change which mailbox is meant (RFC 5321, section 4.1.2). */
  mailbox: string
}

interface PathCommand {
  path: Path
  parameters: string[]
}

/** RFC 5321, section 4.5.3.1.3: a path has at most 256 octets with its angle brackets. */
const MAX_ADDRESS_BYTES = 254
/** The address, where quoted strings may contain brackets, and the parameters. */
const COMMAND = /^(?:MAIL FROM|RCPT TO): *<((?:"(?:[^"\\]|\\[^])*"|[^">])*)>(?: ([^]*))?$/i
/** A source route, which must be ignored (RFC 5321, sections 3.3 and 4.1.1.3, appendix C). */
const SOURCE_ROUTE = /^@[^\s,:@"<>]+(?:,@[^\s,:@"<>]+)*:/
/**
 * A quoted or unquoted local part, and the domain. Leading, trailing and repeated dots are invalid, but some real
 * addresses have them.
 */
const MAILBOX = /^(?:"((?:[^"\\]|\\[^])*)"|([^\s()<>[\]:;@\\,"]+))@([^]*)$/u
const NON_ASCII = /[\u0080-\uffff]/
const LABEL = /^[a-z0-9_\u0080-\u{10ffff}-]{1,255}$/iu
/** C1 controls, invisible characters and bidirectional controls (UAX #9), which make an address look like another. */
const INVISIBLE = /[\u0080-\u009f\u200b\u2060\ufeff\p{Bidi_Control}]/u

/**
 * Parses a MAIL FROM or RCPT TO command in latin1; null if the syntax is wrong (RFC 5321, sections 4.1.1.2 and 4.1.1.3;
 * RFC 6531).
 */
export function readPathCommand(command: string): PathCommand | null {
  const line = asUtf8(command)
  if (line === null) return null
  const [, address, parameters = ''] = COMMAND.exec(line) ?? []
  const path = address === undefined ? null : readPath(address.replace(SOURCE_ROUTE, ''))
  if (path === null) return null
  return { path, parameters: parameters.split(' ').filter((text) => text !== '') }
}

/** Whether an address needs SMTPUTF8 (RFC 6531, section 3.4). */
export function isInternational({ address }: Path): boolean {
  return NON_ASCII.test(address)
}

/**
 * A host name of HELO or EHLO in latin1, decoded as UTF-8 or else as it is: computers are named in any script. Spaces,
 * controls and invisible characters become U+FFFD.
 */
export function readHostname(name: string): string {
  return (asUtf8(name) ?? name).replace(/[\p{C}\p{Z}]/gu, '\ufffd')
}

/** Null if the bytes are not UTF-8. */
function asUtf8(latin1: string): string | null {
  if (!NON_ASCII.test(latin1)) return latin1
  const bytes = Buffer.from(latin1, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : null
}

function readPath(address: string): Path | null {
  if (Buffer.byteLength(address) > MAX_ADDRESS_BYTES || INVISIBLE.test(address)) return null
  // RFC 5321, section 4.1.1.3: the only mailbox that needs no domain.
  if (address === '' || address.toLowerCase() === 'postmaster') return { address, mailbox: address }
  const [, quoted, unquoted, domain = ''] = MAILBOX.exec(address) ?? []
  const local = quoted?.replace(/\\([^])/g, '$1') ?? unquoted
  return local !== undefined && isDomain(domain) ? { address, mailbox: `${local}@${domain}` } : null
}

function isDomain(domain: string): boolean {
  if (domain.startsWith('[') && domain.endsWith(']')) {
    const literal = domain.slice(1, -1)
    return /^IPv6:/i.test(literal) ? isIPv6(literal.slice('IPv6:'.length)) : isIPv4(literal)
  }
  return domain
    .split('.')
    .every((label) => LABEL.test(label) && !label.startsWith('-') && !label.endsWith('-'))
}

/** The parameters of MAIL FROM. */
export interface MailParameters {
  /** SIZE (RFC 1870); null if the client sent none. */
  declaredBytes: number | null
  /** SMTPUTF8 (RFC 6531). */
  isInternational: boolean
}

/** The parameters of MAIL FROM that are defined by the extensions offered in the reply to EHLO. */
const PARAMETERS: ReadonlyMap<string, RegExp> = new Map([
  ['SIZE', /^SIZE=\d{1,20}$/i],
  // BINARYMIME needs CHUNKING (RFC 3030), which is not offered.
  ['BODY', /^BODY=(7BIT|8BITMIME)$/i],
  ['SMTPUTF8', /^SMTPUTF8$/i],
  // The original submitter of the mail (RFC 4954, section 5), which is ignored.
  ['AUTH', /^AUTH=[^ ]/i],
  // Delivery status notifications (RFC 3461), which are ignored: no mail leaves, so nothing can be notified.
  ['RET', /^RET=(FULL|HDRS)$/i],
  ['ENVID', /^ENVID=[^ ]{1,100}$/i],
])

/** The parameters of RCPT TO: those of RFC 3461, which are ignored. */
const RECIPIENT_PARAMETERS: ReadonlyMap<string, RegExp> = new Map([
  ['NOTIFY', /^NOTIFY=(NEVER|(SUCCESS|FAILURE|DELAY)(,(SUCCESS|FAILURE|DELAY)){0,2})$/i],
  ['ORCPT', /^ORCPT=[^ ;]{1,100};[^ ]{1,500}$/i],
])

/**
 * Parses the parameters of MAIL FROM, each at most once. A parameter of an extension that is not offered is refused
 * with 555 (RFC 5321, section 4.1.1.11), because the mail would not be handled as the client requests. Only those of
 * DSN are ignored.
 */
export function readMailParameters(
  texts: readonly string[],
  { maxBytes, offersAuth }: { maxBytes: number; offersAuth: boolean },
): MailParameters | Refusal {
  const values = readParameters(texts, PARAMETERS)
  if (values instanceof Refusal) return values
  if (values.has('AUTH') && !offersAuth) return REFUSALS.unknownParameter
  const size = values.get('SIZE')
  const declaredBytes = size === undefined ? null : Number(size)
  if ((declaredBytes ?? 0) > maxBytes) return REFUSALS.tooLarge
  return { declaredBytes, isInternational: values.has('SMTPUTF8') }
}

/** Why the parameters of RCPT TO are refused; null if they are valid. */
export function refusalOfRecipientParameters(texts: readonly string[]): Refusal | null {
  const values = readParameters(texts, RECIPIENT_PARAMETERS)
  return values instanceof Refusal ? values : null
}

/** The value of each parameter by its name in upper case. */
function readParameters(
  texts: readonly string[],
  syntaxes: ReadonlyMap<string, RegExp>,
): Map<string, string> | Refusal {
  const values = new Map<string, string>()
  for (const text of texts) {
    const [keyword = '', value = ''] = text.split('=')
    const name = keyword.toUpperCase()
    if (values.has(name)) return REFUSALS.wrongParameter
    values.set(name, value)
    const syntax = syntaxes.get(name)
    if (syntax === undefined) return REFUSALS.unknownParameter
    if (!syntax.test(text)) return REFUSALS.wrongParameter
  }
  return values
}
