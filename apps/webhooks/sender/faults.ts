import { errors } from 'undici'

/*
 * What Node and undici say of a connection, in words for who owns the endpoint: what they say themselves names
 * addresses.
 */

const CONNECTING: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed before it was open',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the network of the host',
}

const CERTIFICATE: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate has been revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the server leaves out a certificate between its own and the authority',
  ECONNRESET: 'the connection was closed during the handshake',
}

/** Of calls that are wrong. */
const OURS = /^(UND_ERR_(INVALID_|NOT_SUPPORTED)|ERR_INVALID_)/

/** Of a TCP connection that did not come to be. */
export function connectFault(error: unknown): AttemptFault {
  const code = codeOf(error)
  if (code === 'ETIMEDOUT') return new AttemptFault('timeout', 'the host did not take the connection in time')
  return new AttemptFault('connect', CONNECTING[code] ?? `the connection failed (${code})`)
}

/** Of a handshake. */
export function tlsFault(error: unknown): AttemptFault {
  const code = codeOf(error)
  return new AttemptFault('tls', CERTIFICATE[code] ?? `the handshake failed (${inWords(code)})`)
}

/** Of a request, or what kept it from having a connection. Null if it is a fault of our own. */
export function exchangeFault(error: unknown): AttemptFault | null {
  if (error instanceof AttemptFault) return error
  const code = codeOf(error)
  if (OURS.test(code)) return null
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new AttemptFault('protocol', 'the answer has more header than is read')
  }
  // Some of the parser's have no code.
  if (error instanceof errors.HTTPParserError)
    return new AttemptFault('protocol', 'the answer is no HTTP/1.1')
  if (error instanceof errors.SocketError && error.message.startsWith('bad ')) {
    return new AttemptFault('protocol', 'the answer is an interim one that was not asked for')
  }
  if (/^ERR_(SSL|TLS)_/.test(code)) return tlsFault(error)
  if (error instanceof errors.SocketError || /^E[A-Z_]+$/.test(code)) {
    return new AttemptFault('reset', 'the connection ended before the answer')
  }
  if (error instanceof errors.UndiciError) {
    return new AttemptFault('protocol', `the answer can not be read (${inWords(code)})`)
  }
  return null
}

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown'
}

/** `ERR_SSL_WRONG_VERSION_NUMBER` is `wrong version number`. */
function inWords(code: string): string {
  return code
    .replace(/^(ERR_SSL_|ERR_TLS_|HPE_|UND_ERR_)/, '')
    .replaceAll('_', ' ')
    .toLowerCase()
}

/** What became of one attempt. */
export type AttemptOutcome = AnsweredAttempt | FailedAttempt

export interface AnsweredAttempt {
  kind: 'answered'
  /** 200 to 299, or 400 to 599. */
  status: number
  /** From the beginning of the attempt, the look-up included, to the answer's headers. */
  latencyMs: number
  /** The same to the end of what was read of it. */
  tookMs: number
  /** The first kilobyte of its content as it came, in its encoding; less where the rest did not come in time. */
  answer: Buffer
  /** 0 to 24 h, where Retry-After says so. */
  retryAfterMs: number | null
}

export interface FailedAttempt {
  kind: 'failed'
  reason: FailureReason
  /** A short sentence, without addresses. */
  detail: string
  /** From the beginning of the attempt to the failure; of a redirect, to the answer's headers. */
  latencyMs: number
  /** From the beginning of the attempt to its end. */
  tookMs: number
  /** Of a redirect; else null. */
  status: number | null
}

export type FailureReason =
  /** The URL is none that can be sent to. */
  | 'invalid-url'
  | 'refused-port'
  | 'refused-address'
  /** The name has no address, or nobody said so in time. */
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  /** The connection ended before the answer. */
  | 'reset'
  /** What came is no HTTP, or more header than is read. */
  | 'protocol'
  | 'redirect'

/** Why there is no answer. */
export class AttemptFault extends Error {
  override readonly name = 'AttemptFault'

  constructor(
    readonly reason: FailureReason,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`)
  }
}
