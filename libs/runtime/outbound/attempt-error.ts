import { errors } from 'undici'
import { codeOf } from '#libs/runtime/errors.js'

/*
 * Why an attempt to send a request failed: the errors of Node and undici, translated for the customer who chose the URL.
 * Their own messages contain addresses.
 */

const CONNECTING: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed before it was established',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network of the host is unreachable',
}

const CERTIFICATE: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate has been revoked',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate comes from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the server does not send an intermediate certificate',
  ECONNRESET: 'the connection was closed during the handshake',
}

/** Codes of wrong calls, which are bugs. */
const BUG = /^(UND_ERR_(INVALID_|NOT_SUPPORTED)|ERR_INVALID_)/

export function connectError(error: unknown): AttemptError {
  const code = codeOf(error) ?? 'unknown'
  if (code === 'ETIMEDOUT')
    return new AttemptError('timeout', 'the host did not accept the connection in time')
  return new AttemptError('connect', CONNECTING[code] ?? `the connection failed (${code})`)
}

export function tlsError(error: unknown): AttemptError {
  const code = codeOf(error) ?? 'unknown'
  return new AttemptError('tls', CERTIFICATE[code] ?? `the handshake failed (${inWords(code)})`)
}

/** The error of an attempt for an error of a request. Null if the error is a bug and not caused by the endpoint. */
export function exchangeError(error: unknown): AttemptError | null {
  if (error instanceof AttemptError) return error
  const code = codeOf(error) ?? 'unknown'
  if (BUG.test(code)) return null
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new AttemptError('protocol', 'the response headers are too large')
  }
  // Some errors of the parser have no code.
  if (error instanceof errors.HTTPParserError)
    return new AttemptError('protocol', 'the response is not HTTP/1.1')
  if (error instanceof errors.SocketError && error.message.startsWith('bad ')) {
    return new AttemptError('protocol', 'the response is an unexpected interim response')
  }
  if (/^ERR_(SSL|TLS)_/.test(code)) return tlsError(error)
  if (error instanceof errors.SocketError || /^E[A-Z_]+$/.test(code)) {
    return new AttemptError('reset', 'the connection ended before the response')
  }
  if (error instanceof errors.UndiciError) {
    return new AttemptError('protocol', `the response cannot be parsed (${inWords(code)})`)
  }
  return null
}

/** Turns `ERR_SSL_WRONG_VERSION_NUMBER` into `wrong version number`. */
function inWords(code: string): string {
  return code
    .replace(/^(ERR_SSL_|ERR_TLS_|HPE_|UND_ERR_)/, '')
    .replaceAll('_', ' ')
    .toLowerCase()
}

export type FailureReason =
  /** Not an http or https URL without credentials. */
  | 'invalid-url'
  | 'refused-port'
  | 'refused-address'
  /** The name has no address, or the lookup failed. */
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  /** The connection ended before the response. */
  | 'reset'
  /** The response is not valid HTTP, or its headers are too large. */
  | 'protocol'
  | 'redirect'

export class AttemptError extends Error {
  override readonly name = 'AttemptError'

  constructor(
    readonly reason: FailureReason,
    readonly detail: string,
  ) {
    super(`${reason}: ${detail}`)
  }
}
