import { X509Certificate } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { Settings } from '#libs/config/settings.js'
import { readPemFiles } from '#libs/tls/pem-files.js'
import type { KeyPairPem } from '#libs/tls/authority.js'

export interface ServerCertificate extends KeyPairPem {
  /** PEM file of the authority that a client must trust; null if the operator's own certificate is used. */
  caFile: string | null
}

export interface CertificateOptions {
  settings: Pick<Settings, 'smtpTls' | 'smtpTlsCert' | 'smtpTlsKey' | 'smtpHost' | 'mailDomain'>
  /** Holds the local authority and the certificate that it signed. */
  folder: string
  now: () => Date
}

/** The authority's certificate: what clients trust. */
const CA_FILE = 'ca.pem'
const CA_KEY_FILE = 'ca-key.pem'
const SERVER_FILE = 'smtp-self-signed.pem'

const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 3_650
/** macOS and iOS refuse server certificates that are valid for more than 825 days. */
const SERVER_DAYS = 825
/** Renewed at a start from then on. */
const RENEW_BEFORE_DAYS = 90
/** Clients' clocks may be behind. */
const CLOCK_SKEW_MS = 3_600_000

/**
 * The certificate for STARTTLS and implicit TLS; null if TLS is off. Rejects with ConfigurationError if the
 * operator's files cannot be used.
 */
export async function loadCertificate(options: CertificateOptions): Promise<ServerCertificate | null> {
  const { smtpTls, smtpTlsCert, smtpTlsKey } = options.settings
  if (smtpTls === 'off') return null
  if (smtpTls === 'self-signed') return loadSelfSigned(options)
  const { cert, key } = await readPemFiles({
    cert: { variable: 'MAYFLY_SMTP_TLS_CERT', path: smtpTlsCert },
    key: { variable: 'MAYFLY_SMTP_TLS_KEY', path: smtpTlsKey },
  })
  if (cert === null || key === null) throw new Error('the settings let a certificate without files pass')
  return { cert, key, caFile: null }
}

/**
 * The certificate that the local authority signed for every name and address of this server. Both are kept, and made
 * anew if they are missing, about to expire, or do not name all of these. A start that is killed midway leaves
 * nothing that the next one cannot replace.
 */
async function loadSelfSigned({ settings, folder, now }: CertificateOptions): Promise<ServerCertificate> {
  // Only servers that make certificates load the library.
  const { isIssuedFor, issueCertificate, makeAuthority } = await import('#libs/tls/authority.js')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const notBefore = new Date(now().getTime() - CLOCK_SKEW_MS)
  const validity = (days: number) => ({ notBefore, notAfter: new Date(now().getTime() + days * DAY_MS) })

  const caKeyFile = join(folder, CA_KEY_FILE)
  let authority = await readPair(caKeyFile)
  if (
    authority === null ||
    new X509Certificate(authority.cert).validToDate < validity(SERVER_DAYS).notAfter
  ) {
    authority = await makeAuthority('Mayfly local CA', validity(AUTHORITY_DAYS))
    await writePair(caKeyFile, authority)
  }
  const caFile = join(folder, CA_FILE)
  await replaceFile(caFile, authority.cert, 0o644)

  const hosts = serverHosts(settings)
  const serverFile = join(folder, SERVER_FILE)
  const stored = await readPair(serverFile)
  const needed = { hosts, notBefore: now(), notAfter: validity(RENEW_BEFORE_DAYS).notAfter }
  if (stored !== null && isIssuedFor(stored, authority, needed)) return { ...stored, caFile }
  const request = { commonName: settings.mailDomain, hosts, ...validity(SERVER_DAYS) }
  const issued = await issueCertificate(authority, request)
  await writePair(serverFile, issued)
  return { ...issued, caFile }
}

/** Every name and address that a client may reach this server by. */
function serverHosts({ smtpHost, mailDomain }: Pick<Settings, 'smtpHost' | 'mailDomain'>): string[] {
  const isEveryAddress = smtpHost === '0.0.0.0' || smtpHost === '::'
  const addresses = isEveryAddress
    ? Object.values(networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address))
    : [smtpHost]
  const hosts = ['localhost', '127.0.0.1', '::1', hostname(), mailDomain, ...addresses]
  // Link-local addresses carry an interface name, which no certificate can.
  const isNameable = (host: string) =>
    isIP(host) === 0 ? /^[a-z0-9_.-]{1,253}$/i.test(host) : !/^fe80:|%/i.test(host)
  return [...new Set(hosts.map((host) => host.toLowerCase()))].filter(isNameable)
}

/** Null if there is no such file, or it does not hold both. */
async function readPair(file: string): Promise<KeyPairPem | null> {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return null
    throw error
  })
  if (pem === null) return null
  const [key] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(pem) ?? []
  const [cert] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pem) ?? []
  return key === undefined || cert === undefined ? null : { key, cert }
}

/** Key and certificate are one file, so that they cannot come apart. */
function writePair(file: string, { key, cert }: KeyPairPem): Promise<void> {
  return replaceFile(file, key + cert, 0o600)
}

async function replaceFile(file: string, content: string, mode: number): Promise<void> {
  const draft = `${file}.${process.pid}`
  await writeFile(draft, content, { mode, flush: true })
  await rename(draft, file)
}
