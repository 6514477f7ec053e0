import { X509Certificate } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readPemFiles } from '#libs/tls/pem-files.js'

export interface Certificate {
  cert: string
  key: string
}

export interface CertificateOptions {
  /** PEM files of the operator's; null for a self-signed certificate. */
  certPath: string | null
  keyPath: string | null
  /** Where the self-signed one is kept. */
  folder: string
  domain: string
  now: () => Date
}

const FILE = 'smtp-self-signed.pem'
const VALID_YEARS = 10

/** The certificate for STARTTLS. Rejects with ConfigurationError where the operator's files can't be used. */
export async function loadCertificate(options: CertificateOptions): Promise<Certificate> {
  const { cert, key } = await readPemFiles({
    cert: { variable: 'MAYFLY_SMTP_TLS_CERT', path: options.certPath },
    key: { variable: 'MAYFLY_SMTP_TLS_KEY', path: options.keyPath },
  })
  if (cert !== null && key !== null) return { cert, key }
  return (await keptCertificate(options)) ?? makeCertificate(options)
}

/** Null where there is none yet, it has run out, or it is for another domain. */
async function keptCertificate({ folder, domain, now }: CertificateOptions): Promise<Certificate | null> {
  const pem = await readFile(join(folder, FILE), 'utf8').catch((error: unknown) => {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return null
    throw error
  })
  if (pem === null) return null
  const certificate = new X509Certificate(pem)
  const isValid = certificate.validToDate > now() && certificate.checkHost(domain) !== undefined
  return isValid ? { cert: pem, key: pem } : null
}

/** Key and certificate go into one file, put in place at once: killed midway, the next start makes both anew. */
async function makeCertificate({ folder, domain, now }: CertificateOptions): Promise<Certificate> {
  // Most starts find one made.
  const { generate } = await import('selfsigned')
  const notBeforeDate = now()
  const notAfterDate = new Date(notBeforeDate)
  notAfterDate.setFullYear(notAfterDate.getFullYear() + VALID_YEARS)
  const made = await generate([{ name: 'commonName', value: domain }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate,
    notAfterDate,
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: domain }] }],
  })
  const pem = `${made.private.trim()}\n${made.cert.trim()}\n`
  const path = join(folder, FILE)
  const draft = `${path}.${process.pid}`
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await rm(draft, { force: true })
  await writeFile(draft, pem, { mode: 0o600, flush: true })
  await rename(draft, path)
  return { cert: pem, key: pem }
}
