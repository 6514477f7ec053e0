import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, copyFile, cp, mkdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { openLmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { NotStartedError } from '#test/harness/mayfly-process.js'
import { makeFolder } from '#test/harness/mayfly-with-clock.js'
import { startMayfly, type Mayfly, type StartOptions } from '#test/harness/mayfly.js'

const NOBODY = 65_534

/** The error line of a start that fails. Expects exit code 1 and a single line. */
async function refusalOf(options: StartOptions): Promise<string> {
  const started = await startMayfly(options).catch((error: unknown) => error)
  if (!(started instanceof NotStartedError)) {
    if (started instanceof Error) throw started
    await (started as Mayfly).end('SIGKILL')
    throw new Error('the start did not fail')
  }
  expect(started.ending).toBe(1)
  const lines = started.stderr
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('mayfly: '))
  expect(started.stderr).not.toMatch(/^\s+at /m)
  expect(lines).toHaveLength(1)
  return started.stderr.slice(started.stderr.indexOf('mayfly: '))
}

const PAGE_BYTES = 4096
/** In the header of a page, and among its entries, which are at its end. */
const PLACES_IN_PAGE = { headers: [20], entries: [2_000, 3_500, 3_990, 4_070] } as const

/** Changes bytes of each page of an LMDB file that has a tree: not of the first two pages, nor in large values. */
async function damagePages(path: string, places: readonly number[]): Promise<void> {
  const bytes = await readFile(path)
  for (let page = 2; page < bytes.length / PAGE_BYTES; page += 1) {
    const at = page * PAGE_BYTES
    if (bytes.readBigUInt64LE(at) !== BigInt(page)) continue
    for (const place of places) bytes.writeUInt8(bytes.readUInt8(at + place) ^ 0x55, at + place)
  }
  await writeFile(path, bytes)
}

describe('a start on an unusable data folder', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>

  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(() => folder.remove())

  it('fails if the folder is not writable', async () => {
    // Root can write anywhere, except below a file.
    const isRoot = process.getuid?.() === 0
    await chmod(folder.path, 0o555)
    const refusal = await refusalOf({ dataDir: folder.path, ...(isRoot ? { user: NOBODY } : {}) })
    expect(refusal).toMatch(`the data folder ${folder.path} can't be written`)
    expect(refusal).toMatch('set MAYFLY_DATA_DIR')
  })

  it.each(['', 'below'])('fails if a file is in its place (%p)', async (below) => {
    const file = join(folder.path, 'file')
    await writeFile(file, '')
    expect(await refusalOf({ dataDir: join(file, below) })).toMatch(/can't be written: .*(EEXIST|ENOTDIR)/)
  })

  it.each(['mayfly', 'mayfly/data'])(
    'fails if its file system creates no folders (/proc/%s)',
    async (below) => {
      expect(await refusalOf({ dataDir: join('/proc', below) })).toMatch(
        /^mayfly: the data folder \/proc\/mayfly\S* can't be written: ENOENT.*; set MAYFLY_DATA_DIR to a writable folder$/m,
      )
    },
  )

  it('fails if the log has another number of partitions', async () => {
    await mkdir(join(folder.path, 'event-log'))
    const log = await openLmdbEventLog({
      path: join(folder.path, 'event-log', 'log.mdb'),
      partitions: 3,
      retentionMs: () => null,
      now: () => new Date(),
      onPruneError: (error) => {
        throw error
      },
    })
    await log.close()
    expect(await refusalOf({ dataDir: folder.path })).toMatch(/has 3 partitions, not 8/)
  })

  it.each(['event-log/log.mdb', 'keys/keys.mdb'])('fails if %s is a foreign file', async (file) => {
    const path = join(folder.path, file)
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, randomBytes(65_536))
    expect(await refusalOf({ dataDir: folder.path })).toMatch(path)
  })

  it.each([null, ''])('fails if the log is lost but keys exist (%p)', async (left) => {
    for (const part of ['event-log', 'keys']) await mkdir(join(folder.path, part))
    await writeFile(join(folder.path, 'keys', 'keys.mdb'), 'keys')
    if (left !== null) await writeFile(join(folder.path, 'event-log', 'log.mdb'), left)
    expect(await refusalOf({ dataDir: folder.path })).toMatch(/the event log .* is missing or empty/)
  })

  it('fails if the master key is invalid', async () => {
    const env = { MAYFLY_MASTER_KEY: 'c2hvcnQ=' }
    expect(await refusalOf({ dataDir: folder.path, env })).toMatch(
      /MAYFLY_MASTER_KEY must be 32 bytes in base64/,
    )
  })

  it('fails if the file of the master key is damaged', async () => {
    const file = join(folder.path, 'master.key')
    await writeFile(file, 'c2hvcnQ=')
    expect(await refusalOf({ dataDir: folder.path })).toContain(`${file} is damaged: it is not 32 bytes`)
  })

  it.each(['MAYFLY_HTTP_PORT', 'MAYFLY_SMTP_PORT'])(
    'does not touch the folder if %s is taken',
    async (variable) => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const refusal = await refusalOf({
        dataDir: folder.path,
        hasAnalytics: true,
        env: { [variable]: String(port) },
      })
      expect(refusal).toMatch(new RegExp(`port ${port} of 127.0.0.1 is in use; .*${variable}`))
      server.close()
    },
  )

  it.each([
    { variable: 'MAYFLY_HTTP_HOST', host: '192.0.2.1' },
    { variable: 'MAYFLY_SMTP_HOST', host: '192.0.2.1' },
    { variable: 'MAYFLY_SMTP_HOST', host: 'no-such-host.invalid' },
  ])('does not touch the folder if $variable is $host, a foreign address', async ({ variable, host }) => {
    const refusal = await refusalOf({ dataDir: folder.path, hasAnalytics: true, env: { [variable]: host } })
    expect(refusal).toMatch(new RegExp(`${variable} is not an address of this machine: .*${host}`))
  })

  it('does not touch the folder if the certificate for STARTTLS is invalid', async () => {
    const file = join(folder.path, 'master.key')
    const env = { MAYFLY_SMTP_TLS: 'files', MAYFLY_SMTP_TLS_CERT: file, MAYFLY_SMTP_TLS_KEY: '/none/key.pem' }
    const refusal = await refusalOf({ dataDir: folder.path, env })
    expect(refusal).toContain(`MAYFLY_SMTP_TLS_CERT (${file}) holds no certificate in PEM form`)
    expect(refusal).toContain("MAYFLY_SMTP_TLS_KEY (/none/key.pem) can't be read: ENOENT")
  })
})

describe('a data folder with mail', () => {
  let mayfly: Mayfly
  let inbox: InboxJson

  beforeAll(async () => {
    mayfly = await startMayfly()
    inbox = await createInbox(mayfly)
    for (const subject of ['first', 'second']) await send(mayfly, inbox.address, mail(subject))
    await messagesOf(mayfly, inbox.id, 2)
  })
  afterAll(() => mayfly.dispose())

  async function nothingIsLost(): Promise<void> {
    const messages = await messagesOf(mayfly, inbox.id, 2)
    expect(messages.map(({ subject }) => subject)).toEqual(['first', 'second'])
  }

  it('is refused to a second process, while the first continues', async () => {
    const refusal = await refusalOf({ dataDir: mayfly.dataDir })
    expect(refusal).toMatch(/is in use by another Mayfly process/)
    await nothingIsLost()
  })

  it('is refused with another master key, and opens with its own', async () => {
    await mayfly.end('SIGTERM')
    const env = { MAYFLY_MASTER_KEY: randomBytes(32).toString('base64') }
    const refusal = await refusalOf({ dataDir: mayfly.dataDir, env })
    expect(refusal).toMatch(/master key [0-9a-f]{16}, which is not configured: add it to MAYFLY_MASTER_KEY/)
    mayfly = await mayfly.restart()
    await nothingIsLost()
  })

  it.each([
    { lost: 'keys', refusal: /the keys of inboxes .* are missing/ },
    { lost: 'master.key', refusal: /master\.key is missing/ },
    { lost: 'event-log', refusal: /the event log .* is missing/ },
  ])('is refused if $lost is lost, and opens once it is restored', async ({ lost, refusal }) => {
    await mayfly.end('SIGTERM')
    const [path, aside] = [join(mayfly.dataDir, lost), join(mayfly.dataDir, 'aside')]
    await rename(path, aside)
    expect(await refusalOf({ dataDir: mayfly.dataDir })).toMatch(refusal)
    await rm(path, { recursive: true, force: true })
    await rename(aside, path)
    mayfly = await mayfly.restart()
    await nothingIsLost()
  })

  it.each([
    { file: 'keys/keys.mdb', damaged: 'headers' },
    { file: 'keys/keys.mdb', damaged: 'entries' },
    { file: 'event-log/log.mdb', damaged: 'headers' },
  ] as const)('is refused if $damaged of $file are damaged, and opens once it is restored', async (row) => {
    const ended = await mayfly.end('SIGTERM')
    expect(ended).toBe(0)
    const [path, aside] = [join(mayfly.dataDir, row.file), join(mayfly.dataDir, 'aside')]
    await copyFile(path, aside)
    await damagePages(path, PLACES_IN_PAGE[row.damaged])
    const refusal = await refusalOf({ dataDir: mayfly.dataDir })
    expect(refusal).toMatch(`the file ${path} is damaged: `)
    expect(refusal).toMatch('; restore event-log/, keys/ and master.key from a copy')
    await rename(aside, path)
    mayfly = await mayfly.restart()
    await nothingIsLost()
  })

  it.each([
    ['holds garbage', (path: string) => writeFile(path, randomBytes(65_536))],
    ['is empty', (path: string) => truncate(path, 0)],
    ['is cut short', (path: string) => truncate(path, 3 * 4096)],
    ['has damaged pages', (path: string) => damagePages(path, PLACES_IN_PAGE.headers)],
    ['has damaged entries', (path: string) => damagePages(path, PLACES_IN_PAGE.entries)],
  ])('rebuilds its views if their file %s', async (_, spoil) => {
    await mayfly.end('SIGTERM')
    await spoil(join(mayfly.dataDir, 'read-model', 'views.mdb'))
    mayfly = await mayfly.restart()
    const { status } = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
    expect([200, 503]).toContain(status)
    await nothingIsLost()
  })
})

describe('a data folder with usage figures', () => {
  it('starts without them if their files cannot be read, and says what to do', async () => {
    const first = await startMayfly({ hasAnalytics: true })
    await first.end('SIGTERM')
    const [usage, aside] = [join(first.dataDir, 'usage'), join(first.dataDir, 'aside')]
    await rename(usage, aside)
    // As `cp -rL` copies it.
    await cp(aside, usage, { recursive: true, dereference: true })
    const mayfly = await first.restart()
    expect((await call(mayfly, 'GET', '/v1/usage')).status).toBe(503)
    expect(mayfly.output().stderr).toMatch(
      `opening the usage figures failed: usage is not counted; restore ${usage} from a copy that keeps its symbolic links`,
    )
    expect((await createInbox(mayfly)).state).toBe('active')
    await mayfly.dispose()
  })
})
