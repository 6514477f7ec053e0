import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Verified } from '#apps/cli/verify-views.js'
import { brand } from '#libs/domain/ids/typeid.js'
import { openEngine } from '#libs/engines/open-engine.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { put, remove } from '#libs/ports/read-model/table.js'
import * as tables from '#libs/ports/read-model/tables.js'
import type { Change } from '#libs/ports/read-model/view-store.js'
import type { HistoryEntry, InboxRow } from '#libs/ports/read-model/views.js'
import { readSettings } from '#libs/runtime/config/settings.js'
import { call, create, createInbox, mail, messagesOf, send, type InboxJson } from '#test/harness/client.js'
import { distributedEnvironment, engineUnderTest, startMayfly, type Mayfly } from '#test/harness/mayfly.js'

const MAIN = join(process.cwd(), 'dist/apps/cli/main.js')

describe('the views, compared with the event log', () => {
  let mayfly: Mayfly
  let env: Record<string, string>
  let inbox: InboxJson
  let other: InboxJson

  const verify = (changes: Record<string, string> = {}) =>
    new Promise<Verified & { code: number }>((resolve, reject) => {
      const options = { env: { PATH: process.env.PATH ?? '', ...env, ...changes }, timeout: 110_000 }
      const args = [MAIN, '--json', 'rebuild', '--verify']
      execFile(process.execPath, args, options, (error, stdout, stderr) => {
        if (stdout === '') reject(new Error(stderr))
        else resolve({ ...(JSON.parse(stdout) as Verified), code: error === null ? 0 : Number(error.code) })
      })
    })

  /** Changes the row of an inbox, or its history, in the views, without an event. */
  async function alter(
    { id }: InboxJson,
    changeOf: (row: InboxRow, history: readonly HistoryEntry[]) => Change,
  ): Promise<void> {
    const onError = (error: unknown) => {
      throw error
    }
    const settings = { ...readSettings(env), countsUsage: false }
    const engine = await openEngine({ settings, role: 'test', now: () => new Date(), onError })
    try {
      const row = await engine.inboxes.inbox(brand('inb', id))
      const topic = 'inbox-events'
      const partition = partitionOf(id, engine.log.partitionCount(topic))
      const position = (await engine.inboxes.progress({ topic, partition }))?.position ?? 0
      if (row === null) throw new Error('the inbox is not in the views')
      const all = { order: 'asc', from: 0, to: Number.MAX_SAFE_INTEGER, limit: 10 } as const
      const history = await engine.inboxes.history({ inboxId: row.inbox.id, ...all })
      const step = { topic, partition, from: position, to: position, contents: [] } as const
      expect(await engine.projections.apply({ ...step, changes: [changeOf(row, history)] })).toBe('applied')
    } finally {
      await engine.close()
    }
  }

  beforeAll(async () => {
    mayfly = await startMayfly()
    inbox = await createInbox(mayfly, { labels: { run: '1' } })
    other = await createInbox(mayfly)
    const ended = await createInbox(mayfly)
    for (const { address } of [inbox, inbox, ended]) await send(mayfly, address, mail('one'))
    await messagesOf(mayfly, inbox.id, 2)
    await messagesOf(mayfly, ended.id, 1)
    await call(mayfly, 'DELETE', `/v1/inboxes/${ended.id}`)
    await create(mayfly, `/v1/inboxes/${inbox.id}/webhooks`, { url: 'https://hooks.example/a' })
    const isEmbedded = engineUnderTest() === 'embedded'
    env = {
      MAYFLY_DATA_DIR: mayfly.dataDir,
      ...(isEmbedded
        ? {}
        : { ...distributedEnvironment(basename(mayfly.dataDir)), MAYFLY_BOOTSTRAP_API_KEY: mayfly.apiKey }),
    }
    // The files of the embedded engine have one user.
    if (isEmbedded) await mayfly.end('SIGTERM')
  })
  afterAll(() => mayfly.dispose())

  it('are the same', async () => {
    const verified = await verify()
    expect(verified).toMatchObject({ code: 0, accounts: 1, differences: [], difference_count: 0 })
    // Rows of an account, a key, three inboxes, a webhook and two messages; quotas; seven events of inboxes; those of the
    // account.
    expect(verified.rows).toBeGreaterThan(8 + 1 + 7)
  })

  it('are not compared, and nothing is created, in a folder that is no data folder', async () => {
    if (engineUnderTest() !== 'embedded') return
    const folder = await mkdtemp(join(tmpdir(), 'mayfly-foreign-'))
    await writeFile(join(folder, 'notes.txt'), 'mine')
    await expect(verify({ MAYFLY_DATA_DIR: folder })).rejects.toThrow('is not a data folder of Mayfly')
    expect(await readdir(folder)).toEqual(['notes.txt'])
    await rm(folder, { recursive: true })
  })

  it('are left as they are if something else has changed the file', async () => {
    if (engineUnderTest() !== 'embedded') return
    const copy = await mkdtemp(join(tmpdir(), 'mayfly-copy-'))
    await cp(mayfly.dataDir, copy, { recursive: true, preserveTimestamps: true })
    const file = join(copy, 'read-model/views.mdb')
    const bytes = await readFile(file)
    bytes.fill(0xff, bytes.length / 2)
    await writeFile(file, bytes)
    await expect(verify({ MAYFLY_DATA_DIR: copy })).rejects.toThrow('views.mdb')
    expect((await readFile(file)).equals(bytes)).toBe(true)
    await rm(copy, { recursive: true })
  })

  it('are different if they were altered', async () => {
    const keyOf = (id: string) => ({ id, account_id: expect.stringMatching(/^acc_/) as string })
    await alter(inbox, (row) =>
      put(tables.inboxes, { ...row, inbox: { ...row.inbox, labels: { run: '2' }, messageCount: 7 } }, row),
    )
    const events: string[] = []
    await alter(inbox, ({ inbox: of }, [, entry]) => {
      if (entry === undefined) throw new Error('the inbox has no history')
      events.push(entry.id)
      const before = { inbox: of, entry }
      return put(tables.history, { inbox: of, entry: { ...entry, actor: 'nobody' } }, before)
    })
    await alter(other, (row, [created]) => {
      events.push(created?.id ?? '')
      return remove(tables.inboxes, row)
    })
    const { code, differences } = await verify()
    expect([code, differences]).toEqual([
      6,
      [
        {
          ...keyOf('quotas'),
          difference: 'inboxes *, inboxes development, inboxes-per-day *, inboxes-per-day development',
        },
        { ...keyOf(inbox.id), difference: 'labels, messageCount' },
        { ...keyOf(events[0] ?? ''), difference: 'actor' },
        ...[other.id, events[1]].map((id = '') => ({ ...keyOf(id), difference: 'missing' })),
      ],
    ])
  })
})
