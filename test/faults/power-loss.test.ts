import { randomUUID } from 'node:crypto'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { describeWith } from '#test/harness/tools.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder } from '#test/harness/mayfly-with-clock.js'
import { until } from '#test/harness/until.js'
import { rowEncoding, type Row } from '#libs/engines/embedded/event-log/log-file.js'
import { openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { untilReady } from './api-snapshot.js'
import { removeNewestRecords, logPath } from './stored-log.js'
import { SyncedDisk, straceCommand } from './synced-writes.js'

const MAILS = 40

describe('after a power loss', () => {
  let mayfly: Mayfly
  let inbox: InboxJson

  beforeEach(async () => {
    mayfly = await startMayfly({ hasAnalytics: true })
    inbox = await createInbox(mayfly)
  })
  afterEach(() => mayfly.dispose())

  const subjectsOf = async (count: number) =>
    (await messagesOf(mayfly, inbox.id, count)).map(({ subject }) => subject ?? '')

  async function sendNumbered(from: number, to: number): Promise<void> {
    for (let index = from; index < to; index += 1) await send(mayfly, inbox.address, mail(`Mail ${index}`))
    await messagesOf(mayfly, inbox.id, to)
  }

  const numbered = (count: number) => Array.from({ length: count }, (_, index) => `Mail ${index}`)

  it('Mayfly shows what is left of a log that lost its end, and continues from there', async () => {
    await sendNumbered(0, MAILS)
    await mayfly.end('SIGKILL')
    const other = await removeNewestRecords(mayfly.dataDir, 10)
    expect(other).toBeGreaterThanOrEqual(10)
    mayfly = await mayfly.restart()
    expect(mayfly.output().stderr).toMatch('views are catching up with the log')
    await untilReady(mayfly)
    expect(await subjectsOf(MAILS - 10)).toEqual(numbered(MAILS - 10))
    // Offsets are reused: the records written now must be shown.
    await sendNumbered(MAILS - 10, MAILS + 5)
    expect(await subjectsOf(MAILS + 5)).toEqual(numbered(MAILS + 5))
  })

  it('Mayfly shows the content of an older copy of the log', async () => {
    await sendNumbered(0, 10)
    const folder = await makeFolder()
    const copy = join(folder.path, 'log.mdb')
    await copyFile(logPath(mayfly.dataDir), copy)
    await sendNumbered(10, 20)
    await mayfly.end('SIGKILL')
    await copyFile(copy, logPath(mayfly.dataDir))
    await folder.remove()
    mayfly = await mayfly.restart()
    await untilReady(mayfly)
    expect(await subjectsOf(10)).toEqual(numbered(10))
    expect((await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).body.message_count).toBe(10)
  })
})

describeWith('strace')('the synced data on disk', () => {
  it('has every mail and inbox at the moment of its 250 or 201', async () => {
    const folder = await makeFolder()
    const trace = join(folder.path, 'trace')
    const dataDir = join(folder.path, 'data')
    const mayfly = await startMayfly({ dataDir, hasAnalytics: true, through: straceCommand(trace) })
    const first = await createInbox(mayfly)
    await send(mayfly, first.address, mail('one at a time'))
    await Promise.all([
      ...Array.from({ length: 10 }, (_, index) => send(mayfly, first.address, mail(`At once ${index}`))),
      ...Array.from({ length: 5 }, () => createInbox(mayfly)),
    ])
    expect(await mayfly.end('SIGTERM')).toBe(0)

    const disk = new SyncedDisk()
    let acknowledgements = 0
    const lines = await until('the trace', async () => {
      const text = await readFile(trace, 'utf8')
      return text.includes('+++ exited with 0 +++') && text.split('\n')
    })
    for (const line of lines) {
      const said = disk.replay(line)
      const [, messageId] = /^250 2\.0\.0 (msg_\w+)/.exec(said ?? '') ?? []
      const [, inboxId] = /^HTTP\/1\.1 201 [^]*"id":"(inb_\w+)"/.exec(said ?? '') ?? []
      const log = () => durableText(folder.path, disk.durable(logPath(dataDir)), 'inbox-events')
      if (messageId !== undefined) {
        expect(await log()).toContain(messageId)
        acknowledgements += 1
      }
      if (inboxId !== undefined) {
        expect(await log()).toContain(`"inbox_id":"${inboxId}"`)
        const keys = disk.durable(join(dataDir, 'keys', 'keys.mdb'))
        expect(await durableText(folder.path, keys, null)).toContain(`${inboxId} has a key`)
        acknowledgements += 1
      }
    }
    expect(acknowledgements).toBe(17)
    await folder.remove()
  }, 180_000)
})

interface StoredKey {
  wrapped?: Uint8Array
}

/** What LMDB reads from the bytes that survive a crash: the values of a database, or the keys of the main database. */
async function durableText(folder: string, bytes: Buffer, database: string | null): Promise<string> {
  if (bytes.length === 0) return 'nothing'
  // A new name each time, because lmdb caches files that it has opened.
  const path = join(folder, `${randomUUID()}.mdb`)
  await writeFile(path, bytes)
  const root = openLmdbFile<StoredKey, string>({ path, syncMode: 'before-visible', maxDbs: 16 })
  const text: string[] = []
  if (database === null) {
    for (const { key, value } of root.getRange({})) {
      text.push(`${key} has ${value.wrapped === undefined ? 'no' : 'a'} key`)
    }
  } else {
    const rows = root.openDB<Row, [partition: number, offset: number]>({ name: database, ...rowEncoding() })
    for (const { value } of rows.getRange({})) text.push(Buffer.from(value.v).toString('latin1'))
  }
  await root.close()
  return text.join('\n')
}
