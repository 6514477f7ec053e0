import { causesOf, codeOf } from '../errors.js'

/** The names of the settings of a TLS connection. */
export interface TlsSettings {
  /** The setting with the server's host name. */
  address: string
  ca: string
  /** The settings of the client certificate; null if there are none for this server. */
  own: { cert: string; key: string } | null
}

const NOT_TRUSTED =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|CERT_(UNTRUSTED|SIGNATURE_FAILURE)|INVALID_CA)$/
/** Alerts of a server that refuses the client's certificate, or requires one (RFC 8446, section 6.2). */
const REFUSED =
  /ALERT_(NO_CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/

/** Explains a failed TLS handshake and names the setting to check; null if the connection failed for another reason. */
export function tlsError(error: unknown, settings: TlsSettings): string | null {
  const code = firstCodeOf(error)
  const { address, ca, own } = settings
  if (NOT_TRUSTED.test(code)) {
    return `its certificate was signed by an authority that is not trusted: add that authority's certificate to ${ca}`
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return `its certificate has expired: renew it, or the one in ${ca} if the authority's has expired`
  }
  if (code === 'CERT_NOT_YET_VALID')
    return 'its certificate is not valid yet: check the clocks of both machines'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `its certificate is for another host: write in ${address} a name or address that the certificate contains`
  }
  if (REFUSED.test(code)) {
    const alert = code
      .replace(/^.*ALERT_/, '')
      .replaceAll('_', ' ')
      .toLowerCase()
    return own === null
      ? `it requires a client certificate, which Mayfly has no setting for (${alert}): look at ${address}`
      : `it refuses this client's certificate (${alert}): look at ${own.cert} and ${own.key}`
  }
  return null
}

/** The code of an error, or of the first of its causes that has one. */
function firstCodeOf(error: unknown): string {
  return (
    causesOf(error)
      .map(codeOf)
      .find((code) => code !== null) ?? ''
  )
}
