import { randomUUID } from 'node:crypto'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { call, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { describeWith } from '#test/harness/tools.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder } from '#test/harness/standalone.js'
import { until } from '#test/harness/until.js'
import { rowEncoding, type Row } from '#libs/engines/embedded/event-log/log-file.js'
import { openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { untilReady } from './answers.js'
import { cutTail, logPath } from './log-file.js'
import { SyncedDisk, traceInto } from './synced-writes.js'

const MAILS = 40

describe('a machine that loses its power', () => {
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

  it('with the end of its log gone shows what the log holds, and goes on from there', async () => {
    await sendNumbered(0, MAILS)
    await mayfly.end('SIGKILL')
    const other = await cutTail(mayfly.dataDir, 10)
    expect(other).toBeGreaterThanOrEqual(10)
    mayfly = await mayfly.startAgain()
    expect(mayfly.output().stderr).toMatch('views are catching up with the log')
    await untilReady(mayfly)
    expect(await subjectsOf(MAILS - 10)).toEqual(numbered(MAILS - 10))
    // Offsets are given out anew: what is written there now is what shows.
    await sendNumbered(MAILS - 10, MAILS + 5)
    expect(await subjectsOf(MAILS + 5)).toEqual(numbered(MAILS + 5))
  })

  it('with the log of a moment before shows that one', async () => {
    await sendNumbered(0, 10)
    const folder = await makeFolder()
    const copy = join(folder.path, 'log.mdb')
    await copyFile(logPath(mayfly.dataDir), copy)
    await sendNumbered(10, 20)
    await mayfly.end('SIGKILL')
    await copyFile(copy, logPath(mayfly.dataDir))
    await folder.remove()
    mayfly = await mayfly.startAgain()
    await untilReady(mayfly)
    expect(await subjectsOf(10)).toEqual(numbered(10))
    expect((await call<InboxJson>(mayfly, 'GET', `/v1/inboxes/${inbox.id}`)).body.message_count).toBe(10)
  })
})

describeWith('strace')('what is on disk', () => {
  it('at the moment of each 250 and 201 holds what was promised', async () => {
    const folder = await makeFolder()
    const trace = join(folder.path, 'trace')
    const dataDir = join(folder.path, 'data')
    const mayfly = await startMayfly({ dataDir, hasAnalytics: true, through: traceInto(trace) })
    const first = await createInbox(mayfly)
    await send(mayfly, first.address, mail('one at a time'))
    await Promise.all([
      ...Array.from({ length: 10 }, (_, index) => send(mayfly, first.address, mail(`At once ${index}`))),
      ...Array.from({ length: 5 }, () => createInbox(mayfly)),
    ])
    expect(await mayfly.end('SIGTERM')).toBe(0)

    const disk = new SyncedDisk()
    let promises = 0
    const lines = await until('the trace', async () => {
      const text = await readFile(trace, 'utf8')
      return text.includes('+++ exited with 0 +++') && text.split('\n')
    })
    for (const line of lines) {
      const said = disk.play(line)
      const [, messageId] = /^250 2\.0\.0 (msg_\w+)/.exec(said ?? '') ?? []
      const [, inboxId] = /^HTTP\/1\.1 201 [^]*"id":"(inb_\w+)"/.exec(said ?? '') ?? []
      const log = () => durableText(folder.path, disk.durable(logPath(dataDir)), 'inbox-events')
      if (messageId !== undefined) {
        expect(await log()).toContain(messageId)
        promises += 1
      }
      if (inboxId !== undefined) {
        expect(await log()).toContain(`"inbox_id":"${inboxId}"`)
        const keys = disk.durable(join(dataDir, 'keys', 'keys.mdb'))
        expect(await durableText(folder.path, keys, null)).toContain(`${inboxId} has a key`)
        promises += 1
      }
    }
    expect(promises).toBe(17)
    await folder.remove()
  }, 60_000)
})

interface StoredKey {
  wrapped?: Uint8Array
}

/** What LMDB reads from the bytes that a crash would leave: the values of a database, or the keys of the main one. */
async function durableText(folder: string, bytes: Buffer, database: string | null): Promise<string> {
  if (bytes.length === 0) return 'nothing'
  // A name of its own each time, since lmdb knows a file that it had open.
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
