import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { ConfigurationError } from '#libs/runtime/config/settings.js'
import { messageOf } from '#libs/runtime/errors.js'

/** The file that a setting names; its path is null if the setting is not set. */
export interface PemFile {
  variable: string
  path: string | null
}

export interface PemFiles {
  ca?: PemFile
  cert: PemFile
  key: PemFile
}

/** The PEM text of each file; null if its setting is not set. */
export interface PemTexts {
  ca: string | null
  cert: string | null
  key: string | null
}

/** More than a bundle of all authorities that a system trusts. */
const MAX_BYTES = 4 << 20
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * Reads certificates and their key. Rejects with a ConfigurationError that names the variable and the file of each error:
 * files that can't be read, are not PEM, or don't match.
 */
export async function readPemFiles(files: PemFiles): Promise<PemTexts> {
  const { ca: caFile = { variable: '', path: null }, cert: certFile, key: keyFile } = files
  const errors: string[] = []
  const read = async <Parsed>(file: PemFile, parse: (text: string) => Parsed) => {
    if (file.path === null) return { text: null, parsed: null }
    try {
      const text = await readBounded(file.path)
      return { text, parsed: parse(text) }
    } catch (error) {
      errors.push(`${named(file)} ${messageOf(error)}`)
      return { text: null, parsed: null }
    }
  }
  const ca = await read(caFile, firstCertificate)
  const cert = await read(certFile, firstCertificate)
  const key = await read(keyFile, privateKeyIn)
  if (cert.parsed !== null && key.parsed !== null && !cert.parsed.checkPrivateKey(key.parsed)) {
    errors.push(`${named(keyFile)} is not the key of the certificate in ${named(certFile)}`)
  }
  if (errors.length > 0) throw new ConfigurationError(errors)
  return { ca: ca.text, cert: cert.text, key: key.text }
}

/** Refuses pipes and devices, which may never end, and large files. */
async function readBounded(path: string): Promise<string> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new Error('it is not a file')
    if (found.size > MAX_BYTES) throw new Error(`it has ${found.size} bytes, too many for certificates`)
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new Error(`can't be read: ${messageOf(cause)}`, { cause })
  }
}

/** The first certificate of a chain, which is the holder's. Throws if any certificate of the chain is damaged. */
function firstCertificate(text: string): X509Certificate {
  const blocks = text.match(CERTIFICATE) ?? []
  const [first] = blocks.map((block) => {
    try {
      return new X509Certificate(block)
    } catch (cause) {
      throw new Error('holds a certificate that is damaged', { cause })
    }
  })
  if (first === undefined) throw new Error('holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)')
  return first
}

function privateKeyIn(text: string): KeyObject {
  if (text.includes('ENCRYPTED'))
    throw new Error('holds a key that is protected by a passphrase: remove the passphrase')
  try {
    return createPrivateKey(text)
  } catch (cause) {
    throw new Error('holds no private key in PEM form (-----BEGIN PRIVATE KEY-----)', { cause })
  }
}

function named({ variable, path }: PemFile): string {
  return `${variable} (${path ?? ''})`
}
