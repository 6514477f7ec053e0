import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError, type Settings } from '#libs/runtime/config/settings.js'
import { codeOf } from '#libs/runtime/errors.js'
import { makeFolder } from '#libs/runtime/folder.js'
import type { KeyPairPem } from '#libs/runtime/tls/authority.js'
import { readPemFiles } from '#libs/runtime/tls/pem-files.js'

export interface ServerCertificate extends KeyPairPem {
  /** PEM file of the authority that clients must trust; null if the operator provides the certificate. */
  caFile: string | null
}

export interface CertificateOptions {
  settings: Pick<Settings, 'smtpTls' | 'smtpTlsCert' | 'smtpTlsKey' | 'smtpHost' | 'mailDomain'>
  /** The folder of the local authority and the certificate that it signed. */
  folder: string
  now: () => Date
}

/** The authority's certificate, which clients trust. */
const CA_FILE = 'ca.pem'
const CA_KEY_FILE = 'ca-key.pem'
const SERVER_FILE = 'smtp-self-signed.pem'

const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 3_650
/** macOS and iOS refuse server certificates that are valid for more than 825 days. */
const SERVER_DAYS = 825
/** A start renews the certificate if it expires within this time. */
const RENEW_BEFORE_DAYS = 90
/** Clients' clocks may be behind. */
const CLOCK_SKEW_MS = 3_600_000

/**
 * Loads the certificate for STARTTLS and implicit TLS; null if TLS is off. Rejects with ConfigurationError if the
 * operator's files, or the files of an earlier start, can't be used.
 */
export async function loadCertificate(options: CertificateOptions): Promise<ServerCertificate | null> {
  const { smtpTls, smtpTlsCert, smtpTlsKey } = options.settings
  if (smtpTls === 'off') return null
  if (smtpTls === 'self-signed') return loadSelfSigned(options)
  const { cert, key } = await readPemFiles({
    cert: { variable: 'MAYFLY_SMTP_TLS_CERT', path: smtpTlsCert },
    key: { variable: 'MAYFLY_SMTP_TLS_KEY', path: smtpTlsKey },
  })
  if (cert === null || key === null)
    throw new Error('MAYFLY_SMTP_TLS is files, but no certificate files are set')
  return { cert, key, caFile: null }
}

/**
 * Loads the certificate that the local authority signed for every name and address of this server. Both are stored,
 * and issued again if they are missing, about to expire, or lack a name. If a start is killed midway, the next one
 * completes its files.
 */
async function loadSelfSigned({ settings, folder, now }: CertificateOptions): Promise<ServerCertificate> {
  // Imported here, because the module is needed only for self-signed certificates.
  const { isIssuedFor, issueCertificate, makeAuthority } = await import('#libs/runtime/tls/authority.js')
  makeFolder(folder)
  const notBefore = new Date(now().getTime() - CLOCK_SKEW_MS)
  const validity = (days: number) => ({ notBefore, notAfter: new Date(now().getTime() + days * DAY_MS) })

  const caKeyFile = join(folder, CA_KEY_FILE)
  let authority = await readPair(caKeyFile)
  if (authority === null || !isValidFor(authority, now(), validity(SERVER_DAYS).notAfter)) {
    const created = await makeAuthority('Mayfly local CA', validity(AUTHORITY_DAYS))
    // If several processes start at once, all use the authority of the first that stores one.
    await storeFile(caKeyFile, pairOf(created), 0o600, authority === null ? link : rename)
    authority = (await readPair(caKeyFile)) ?? created
  }
  const caFile = join(folder, CA_FILE)
  await storeFile(caFile, authority.cert, 0o644)

  const hosts = serverHosts(settings)
  const serverFile = join(folder, SERVER_FILE)
  const stored = await readPair(serverFile)
  const needed = { hosts, notBefore: now(), notAfter: validity(RENEW_BEFORE_DAYS).notAfter }
  if (stored !== null && isIssuedFor(stored, authority, needed)) return { ...stored, caFile }
  const request = { commonName: settings.mailDomain, hosts, ...validity(SERVER_DAYS) }
  const issued = await issueCertificate(authority, request)
  await storeFile(serverFile, pairOf(issued), 0o600)
  return { ...issued, caFile }
}

/** Every name and address by which a client may reach this server. */
function serverHosts({ smtpHost, mailDomain }: Pick<Settings, 'smtpHost' | 'mailDomain'>): string[] {
  const isEveryAddress = smtpHost === '0.0.0.0' || smtpHost === '::'
  const addresses = isEveryAddress
    ? Object.values(networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address))
    : [smtpHost]
  const hosts = ['localhost', '127.0.0.1', '::1', hostname(), mailDomain, ...addresses]
  // Link-local addresses have an interface name, which a certificate can't contain.
  const isNameable = (host: string) =>
    isIP(host) === 0 ? /^[a-z0-9_.-]{1,253}$/i.test(host) : !/^fe80:|%/i.test(host)
  return [...new Set(hosts.map((host) => host.toLowerCase()))].filter(isNameable)
}

function isValidFor({ cert }: KeyPairPem, from: Date, to: Date): boolean {
  const { validFromDate, validToDate } = new X509Certificate(cert)
  return validFromDate <= from && validToDate >= to
}

/** Null if the file does not exist. Rejects with ConfigurationError if it does not hold a certificate and its key. */
async function readPair(file: string): Promise<KeyPairPem | null> {
  const pem = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  })
  if (pem === null) return null
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\r?\n/.exec(pem) ?? []
  const [cert = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\r?\n/.exec(pem) ?? []
  try {
    if (new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) return { key, cert }
  } catch {
    // One of them is damaged.
  }
  const fix = 'restore it from a backup, or delete it so that the next start creates a new one'
  throw new ConfigurationError([`${file} holds no certificate with its key: ${fix}`])
}

/** The key and the certificate are in one file, so that they are always replaced together. */
function pairOf({ key, cert }: KeyPairPem): string {
  return key + cert
}

/** Writes a whole file at once. With `link` as `place`, an existing file stays. */
async function storeFile(file: string, content: string, mode: number, place = rename): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, content, { mode, flag: 'wx', flush: true })
  await place(draft, file).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
  await rm(draft, { force: true })
}
