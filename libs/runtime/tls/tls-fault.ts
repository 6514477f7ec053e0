/** The settings that a connection over TLS is made from. */
export interface TlsSettings {
  /** Says where the server is, and by which name. */
  address: string
  ca: string
  /** Null if this client shows no certificate to such a server. */
  own: { cert: string; key: string } | null
}

const MOST_CAUSES = 10
const NOT_TRUSTED =
  /^(SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)|CERT_(UNTRUSTED|SIGNATURE_FAILURE)|INVALID_CA)$/
/** What a server says that does not take the client's certificate, or its lack (RFC 8446, section 6.2). */
const REFUSED =
  /ALERT_(NO_CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(REVOKED|EXPIRED|UNKNOWN|REQUIRED)|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/

/** What a failed handshake says, and which setting to look at; null if it failed for another reason. */
export function tlsFault(error: unknown, settings: TlsSettings): string | null {
  const code = codeOf(error)
  const { address, ca, own } = settings
  if (NOT_TRUSTED.test(code)) {
    return `its certificate comes from an authority that is not trusted: put that authority's certificate in ${ca}`
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return `its certificate has expired: renew it there, or in ${ca} where it is the authority's that has`
  }
  if (code === 'CERT_NOT_YET_VALID')
    return "its certificate is not valid yet: is either machine's clock wrong?"
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `its certificate is for another host: write in ${address} a name or address that stands in the certificate`
  }
  if (REFUSED.test(code)) {
    const alert = code
      .replace(/^.*ALERT_/, '')
      .replaceAll('_', ' ')
      .toLowerCase()
    return own === null
      ? `it wants a certificate of its client, and there is no setting for one (${alert}): look at ${address}`
      : `it does not take this client's certificate (${alert}): look at ${own.cert} and ${own.key}`
  }
  return null
}

/** The code of an error or of the first that it follows from and that has one. */
function codeOf(error: unknown): string {
  let each = error
  for (let depth = 0; depth < MOST_CAUSES && typeof each === 'object' && each !== null; depth += 1) {
    if ('code' in each && typeof each.code === 'string') return each.code
    each = 'cause' in each ? each.cause : null
  }
  return ''
}
