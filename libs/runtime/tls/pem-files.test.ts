import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '#libs/runtime/config/settings.js'
import { Authority, type CertificateFiles } from '#test/harness/certificates.js'
import { readPemFiles } from './pem-files.js'

describe('PEM files that settings name', () => {
  let folder: string
  let authority: Authority
  let own: CertificateFiles
  let other: CertificateFiles

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-pem-'))
    authority = await Authority.make()
    own = await authority.issue('own')
    other = await authority.issue('other')
    await writeFile(at('text.pem'), 'not a certificate')
    await writeFile(at('damaged.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    await writeFile(at('locked.pem'), '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n')
    await writeFile(at('large.pem'), Buffer.alloc((4 << 20) + 1))
  })
  afterAll(() => Promise.all([authority.dispose(), rm(folder, { recursive: true })]))

  const at = (name: string) => join(folder, name)

  function read(paths: { ca?: string; cert?: string; key?: string }) {
    const file = (variable: string, path: string | undefined) => ({ variable, path: path ?? null })
    return readPemFiles({
      ca: file('THE_CA', paths.ca),
      cert: file('THE_CERT', paths.cert),
      key: file('THE_KEY', paths.key),
    })
  }

  async function errorsOf(paths: Parameters<typeof read>[0]): Promise<readonly string[]> {
    const found: unknown = await read(paths).catch((error: unknown) => error)
    return found instanceof ConfigurationError ? found.errors : []
  }

  it('are read; null if a setting is not set', async () => {
    expect(await read({})).toEqual({ ca: null, cert: null, key: null })
    const { ca, cert, key } = await read({ ca: authority.certFile, cert: own.cert, key: own.key })
    expect([ca, cert, key].map((text) => text?.split('\n')[0])).toEqual([
      '-----BEGIN CERTIFICATE-----',
      '-----BEGIN CERTIFICATE-----',
      '-----BEGIN PRIVATE KEY-----',
    ])
  })

  it('may hold a chain, and the key together with the certificate', async () => {
    expect(await errorsOf({ ca: own.both, cert: own.both, key: own.both })).toEqual([])
  })

  it.each([
    { file: 'none.pem', why: /can't be read: .*ENOENT/ },
    { file: '.', why: /can't be read: .*it is not a file/ },
    { file: 'large.pem', why: /can't be read: .*it has 4194305 bytes/ },
    { file: 'text.pem', why: /holds no certificate in PEM form/ },
    { file: 'damaged.pem', why: /holds a certificate that is damaged/ },
  ])('are reported with their variable if the certificate is invalid: $file', async ({ file, why }) => {
    const [error = ''] = await errorsOf({ ca: at(file) })
    expect(error).toMatch(why)
    expect(error).toContain(`THE_CA (${at(file)})`)
  })

  it.each([
    { file: 'text.pem', why: /holds no private key in PEM form/ },
    { file: 'locked.pem', why: /protected by a passphrase/ },
  ])('are reported with their variable if the key is invalid: $file', async ({ file, why }) => {
    const [error = ''] = await errorsOf({ cert: own.cert, key: at(file) })
    expect(error).toMatch(why)
    expect(error).toContain(`THE_KEY (${at(file)})`)
  })

  it('are refused if the key is that of another certificate', async () => {
    const errors = await errorsOf({ cert: own.cert, key: other.key })
    expect(errors).toEqual([expect.stringMatching(/^THE_KEY .*is not the key of .*THE_CERT /)])
  })

  it('are reported with all errors at once', async () => {
    expect(await errorsOf({ ca: at('none.pem'), cert: at('text.pem'), key: at('text.pem') })).toHaveLength(3)
  })
})
