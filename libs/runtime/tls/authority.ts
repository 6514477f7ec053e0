import 'reflect-metadata'
import { createPrivateKey, X509Certificate, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

/** A certificate and its private key (PKCS #8), both PEM. */
export interface KeyPairPem {
  cert: string
  key: string
}

export interface Validity {
  notBefore: Date
  notAfter: Date
}

export interface CertificateRequest extends Validity {
  commonName: string
  /** DNS names and IP addresses, for the subject alternative names; none for a client certificate. */
  hosts: readonly string[]
}

const EC = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
/** Random bytes of a serial number: at most 20 octets (RFC 5280, section 4.1.2.2). */
const SERIAL_BYTES = 16

/** Makes the self-signed certificate of an authority that can sign server and client certificates, but no authorities. */
export async function makeAuthority(commonName: string, validity: Validity): Promise<KeyPairPem> {
  const keys = await makeKeys()
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity,
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    signingAlgorithm: EC,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return toPem(cert, keys.privateKey)
}

/** Makes a certificate for servers and clients, signed by the authority (RFC 5280, section 4.2.1). */
export async function issueCertificate(
  authority: KeyPairPem,
  { commonName, hosts, ...validity }: CertificateRequest,
): Promise<KeyPairPem> {
  const issuer = new x509.X509Certificate(authority.cert)
  const keys = await makeKeys()
  const names = hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }) as const)
  const cert = await x509.X509CertificateGenerator.create({
    ...validity,
    serialNumber: serialNumber(),
    subject: `CN=${commonName}`,
    issuer: issuer.subject,
    signingAlgorithm: EC,
    publicKey: keys.publicKey,
    signingKey: await signingKey(authority.key),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        x509.ExtendedKeyUsage.clientAuth,
      ]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      // Python 3.13 and later reject certificates without it.
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  })
  return toPem(cert, keys.privateKey)
}

/** Whether the certificate is signed by the authority, valid for the whole period, and for every host. */
export function isIssuedFor(
  pem: KeyPairPem,
  authority: KeyPairPem,
  { hosts, notBefore, notAfter }: Validity & { hosts: readonly string[] },
): boolean {
  const certificate = new X509Certificate(pem.cert)
  const issuer = new X509Certificate(authority.cert)
  return (
    certificate.checkIssued(issuer) &&
    certificate.verify(issuer.publicKey) &&
    certificate.checkPrivateKey(createPrivateKey(pem.key)) &&
    certificate.validFromDate <= notBefore &&
    certificate.validToDate >= notAfter &&
    hosts.every(
      (host) => (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined,
    )
  )
}

async function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(EC, true, ['sign', 'verify'])
}

function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(pem), EC, false, ['sign'])
}

async function toPem(cert: x509.X509Certificate, key: webcrypto.CryptoKey): Promise<KeyPairPem> {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', key)
  return {
    cert: `${cert.toString('pem').trim()}\n`,
    key: `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY').trim()}\n`,
  }
}

function serialNumber(): string {
  return Buffer.from(webcrypto.getRandomValues(new Uint8Array(SERIAL_BYTES))).toString('hex')
}
