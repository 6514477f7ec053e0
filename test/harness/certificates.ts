import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

/** PEM files of a certificate and its key. */
export interface CertificateFiles {
  cert: string
  key: string
  /** Both in one file, as Kafka takes them. */
  both: string
}

interface Issuing {
  /** Names and IPv4 addresses that it is for; none for a client's. */
  hosts?: readonly string[]
  /** When it ends; a day from now unless told otherwise. */
  until?: Date
}

const DAY_MS = 86_400_000
/** TLS compares clocks to the second. */
const ALREADY_MS = 60_000

/** A certificate authority of a suite's own. */
export class Authority {
  private issued = 0

  private constructor(
    private readonly folder: string,
    private readonly pem: { cert: string; key: string },
    /** PEM file of the authority's certificate. */
    readonly certFile: string,
  ) {}

  static async make(name = 'an authority for tests'): Promise<Authority> {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-authority-'))
    const made = await generate([{ name: 'commonName', value: name }], {
      keyType: 'ec',
      algorithm: 'sha256',
      notBeforeDate: new Date(Date.now() - ALREADY_MS),
      extensions: [
        { name: 'basicConstraints', cA: true, critical: true },
        { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
      ],
    })
    const certFile = join(folder, 'authority.pem')
    await writeFile(certFile, made.cert)
    return new Authority(folder, { cert: made.cert, key: made.private }, certFile)
  }

  /** A certificate that servers and clients may show, with that common name. */
  async issue(name: string, { hosts = [], until }: Issuing = {}): Promise<CertificateFiles> {
    const notAfterDate = until ?? new Date(Date.now() + DAY_MS)
    const made = await generate([{ name: 'commonName', value: name }], {
      keyType: 'ec',
      algorithm: 'sha256',
      ca: this.pem,
      notBeforeDate: new Date(Math.min(Date.now(), notAfterDate.getTime()) - ALREADY_MS),
      notAfterDate,
      extensions: [
        { name: 'keyUsage', digitalSignature: true },
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        ...(hosts.length === 0 ? [] : [{ name: 'subjectAltName' as const, altNames: hosts.map(altName) }]),
      ],
    })
    this.issued += 1
    const path = (what: string) => join(this.folder, `${this.issued}-${what}.pem`)
    const files = { cert: path('cert'), key: path('key'), both: path('both') }
    await writeFile(files.cert, made.cert)
    await writeFile(files.key, made.private)
    await writeFile(files.both, `${made.private.trim()}\n${made.cert.trim()}\n${this.pem.cert.trim()}\n`)
    return files
  }

  async dispose(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

function altName(host: string): { type: 2; value: string } | { type: 7; ip: string } {
  return /^[\d.]+$/.test(host) ? { type: 7, ip: host } : { type: 2, value: host }
}
