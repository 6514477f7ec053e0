import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueCertificate, makeAuthority, type KeyPairPem } from '#libs/runtime/tls/authority.js'

/** PEM files of a certificate and its key. */
export interface CertificateFiles {
  cert: string
  key: string
  /** Both in one file, as Kafka expects them. */
  both: string
}

interface Issuing {
  /** Host names and addresses of a server; empty for a client. */
  hosts?: readonly string[]
  /** Expiry; a day from now by default. */
  until?: Date
}

const DAY_MS = 86_400_000
/** TLS compares times in whole seconds. */
const CLOCK_SKEW_MS = 60_000

/** A certificate authority for one suite. */
export class Authority {
  private issued = 0

  private constructor(
    private readonly folder: string,
    private readonly pem: KeyPairPem,
    /** PEM file of the authority's certificate. */
    readonly certFile: string,
  ) {}

  static async make(name = 'an authority for tests'): Promise<Authority> {
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-authority-'))
    const now = Date.now()
    const validity = { notBefore: new Date(now - CLOCK_SKEW_MS), notAfter: new Date(now + DAY_MS) }
    const made = await makeAuthority(name, validity)
    const certFile = join(folder, 'authority.pem')
    await writeFile(certFile, made.cert)
    return new Authority(folder, made, certFile)
  }

  /** Issues a certificate for servers and clients with that common name. */
  async issue(commonName: string, { hosts = [], until }: Issuing = {}): Promise<CertificateFiles> {
    const notAfter = until ?? new Date(Date.now() + DAY_MS)
    const notBefore = new Date(Math.min(Date.now(), notAfter.getTime()) - CLOCK_SKEW_MS)
    const made = await issueCertificate(this.pem, { commonName, hosts, notBefore, notAfter })
    this.issued += 1
    const path = (what: string) => join(this.folder, `${this.issued}-${what}.pem`)
    const files = { cert: path('cert'), key: path('key'), both: path('both') }
    await writeFile(files.cert, made.cert)
    await writeFile(files.key, made.key)
    await writeFile(files.both, `${made.key}${made.cert}${this.pem.cert}`)
    return files
  }

  async dispose(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}
