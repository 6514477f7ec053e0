import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { NotStartedError } from '#test/harness/mayfly-process.js'
import { startMayfly, type Mayfly, type StartOptions } from '#test/harness/mayfly.js'
import { makeFolder } from '#test/harness/standalone.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'

const NOBODY = 65_534

/** What a start that fails says on standard error; it must say so with an exit code of 1, in one line. */
async function refusalOf(options: StartOptions): Promise<string> {
  const started = await startMayfly(options).catch((error: unknown) => error)
  if (!(started instanceof NotStartedError)) {
    if (started instanceof Error) throw started
    await (started as Mayfly).end('SIGKILL')
    throw new Error('it started')
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

describe('a data folder that can not be used', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>

  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(() => folder.remove())

  it('is told where it may not be written', async () => {
    // Root may write anywhere but below a file.
    const isRoot = process.getuid?.() === 0
    await chmod(folder.path, 0o555)
    const said = await refusalOf({ dataDir: folder.path, ...(isRoot ? { user: NOBODY } : {}) })
    expect(said).toMatch(`the data folder ${folder.path} can't be written`)
    expect(said).toMatch('set MAYFLY_DATA_DIR')
  })

  it.each(['', 'below'])('is told where a file stands in its place (%p)', async (below) => {
    const file = join(folder.path, 'file')
    await writeFile(file, '')
    expect(await refusalOf({ dataDir: join(file, below) })).toMatch(/can't be written: .*(EEXIST|ENOTDIR)/)
  })

  it('is told where the log has another number of partitions', async () => {
    await mkdir(join(folder.path, 'event-log'))
    const log = await LmdbEventLog.open({
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

  it.each(['event-log/log.mdb', 'keys/keys.mdb'])('is told where %s is none of its own', async (file) => {
    const path = join(folder.path, file)
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, randomBytes(65_536))
    expect(await refusalOf({ dataDir: folder.path })).toMatch(path)
  })

  it.each([null, ''])('is told where its log is lost, though keys are there (%p)', async (left) => {
    for (const part of ['event-log', 'keys']) await mkdir(join(folder.path, part))
    await writeFile(join(folder.path, 'keys', 'keys.mdb'), 'keys')
    if (left !== null) await writeFile(join(folder.path, 'event-log', 'log.mdb'), left)
    expect(await refusalOf({ dataDir: folder.path })).toMatch(/the event log .* is missing or empty/)
  })

  it('is told where the master key is no key', async () => {
    const env = { MAYFLY_MASTER_KEY: 'c2hvcnQ=' }
    expect(await refusalOf({ dataDir: folder.path, env })).toMatch(
      /MAYFLY_MASTER_KEY must be 32 bytes in base64/,
    )
  })

  it.each(['MAYFLY_HTTP_PORT', 'MAYFLY_SMTP_PORT'])('is left alone where %s is taken', async (variable) => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const said = await refusalOf({
      dataDir: folder.path,
      hasAnalytics: true,
      env: { [variable]: String(port) },
    })
    expect(said).toMatch(new RegExp(`port ${port} of 127.0.0.1 is in use; .*${variable}`))
    server.close()
  })

  it.each([
    { variable: 'MAYFLY_HTTP_HOST', host: '192.0.2.1' },
    { variable: 'MAYFLY_SMTP_HOST', host: '192.0.2.1' },
    { variable: 'MAYFLY_SMTP_HOST', host: 'no-such-host.invalid' },
  ])('is left alone where $variable is $host, which is not here', async ({ variable, host }) => {
    const said = await refusalOf({ dataDir: folder.path, hasAnalytics: true, env: { [variable]: host } })
    expect(said).toMatch(new RegExp(`${variable} is not an address of this machine: .*${host}`))
  })

  it('is left alone where the certificate for STARTTLS is none', async () => {
    const file = join(folder.path, 'master.key')
    const env = { MAYFLY_SMTP_TLS: 'files', MAYFLY_SMTP_TLS_CERT: file, MAYFLY_SMTP_TLS_KEY: '/none/key.pem' }
    const said = await refusalOf({ dataDir: folder.path, env })
    expect(said).toContain(`MAYFLY_SMTP_TLS_CERT (${file}) holds no certificate in PEM form`)
    expect(said).toContain("MAYFLY_SMTP_TLS_KEY (/none/key.pem) can't be read: ENOENT")
  })
})

describe('a data folder with mail in it', () => {
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

  it('is refused to a second process, and the first goes on', async () => {
    const said = await refusalOf({ dataDir: mayfly.dataDir })
    expect(said).toMatch(/is in use by another Mayfly process/)
    await nothingIsLost()
  })

  it('is refused under another master key, and opens under its own', async () => {
    await mayfly.end('SIGTERM')
    const env = { MAYFLY_MASTER_KEY: randomBytes(32).toString('base64') }
    const said = await refusalOf({ dataDir: mayfly.dataDir, env })
    expect(said).toMatch(/master key [0-9a-f]{16}, which is not configured: add it to MAYFLY_MASTER_KEY/)
    mayfly = await mayfly.startAgain()
    await nothingIsLost()
  })

  it.each([
    { lost: 'keys', said: /the keys of inboxes .* are missing/ },
    { lost: 'master.key', said: /master\.key is missing/ },
    { lost: 'event-log', said: /the event log .* is missing/ },
  ])('is refused where $lost is lost, and opens once it is put back', async ({ lost, said }) => {
    await mayfly.end('SIGTERM')
    const [path, aside] = [join(mayfly.dataDir, lost), join(mayfly.dataDir, 'aside')]
    await rename(path, aside)
    expect(await refusalOf({ dataDir: mayfly.dataDir })).toMatch(said)
    await rm(path, { recursive: true, force: true })
    await rename(aside, path)
    mayfly = await mayfly.startAgain()
    await nothingIsLost()
  })

  it.each([
    ['holds garbage', (path: string) => writeFile(path, randomBytes(65_536))],
    ['is empty', (path: string) => truncate(path, 0)],
    ['is cut short', (path: string) => truncate(path, 3 * 4096)],
  ])('rebuilds its views where their file %s', async (_, spoil) => {
    await mayfly.end('SIGTERM')
    await spoil(join(mayfly.dataDir, 'read-model', 'views.mdb'))
    mayfly = await mayfly.startAgain()
    const { status } = await call(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)
    expect([200, 503]).toContain(status)
    await nothingIsLost()
  })
})
