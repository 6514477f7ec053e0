import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { digestOf } from '#libs/domain/audit/leaf.js'
import { partitionName } from '#libs/ports/event-log/event-log.js'
import { call, createInbox } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { makeFolder, startWithClock } from '#test/harness/mayfly-with-clock.js'
import {
  auditLogOf,
  downloadLog,
  fileOf,
  leafHash,
  merkleTreeHash,
  verifyCheckpoint,
  type AuditLogJson,
  type Checkpoint,
} from '#test/harness/transparency-log.js'
import { until } from '#test/harness/until.js'
import { openLog } from './stored-log.js'

const ROUNDS = 3
/** Leaves are appended, and shown, within this time. */
const MAX_PAUSE_MS = 1_000

describe('the audit log, killed at random moments', () => {
  let mayfly: Mayfly

  beforeAll(async () => {
    mayfly = await startMayfly()
  })
  afterAll(() => mayfly.dispose())

  it(
    'never contradicts a checkpoint that it has signed, and has every event once, also after the views are lost',
    async () => {
      const log = await auditLogOf(mayfly)
      const seen: Checkpoint[] = []
      for (let round = 0; round < ROUNDS; round += 1) {
        const sizeBefore = seen.at(-1)?.size ?? 0
        const over = new AbortController()
        const creating = (async () => {
          while (!over.signal.aborted) await createInbox(mayfly).catch(() => null)
        })()
        await until('a further checkpoint', async () => {
          const note = await fileOf(mayfly, `${log.id}/checkpoint`).catch(() => null)
          if (note !== null) seen.push(verifyCheckpoint(note.toString(), log.public_key))
          return (seen.at(-1)?.size ?? 0) > sizeBefore
        })
        await pause(Math.random() * MAX_PAUSE_MS)
        over.abort()
        await mayfly.end('SIGKILL')
        await creating
        if (round === 1) await rm(join(mayfly.dataDir, 'read-model'), { recursive: true })
        mayfly = await mayfly.restart()
        await until('readiness', async () => (await call(mayfly, 'GET', '/readyz')).status === 200)
      }
      await createInbox(mayfly)
      await mayfly.end('SIGTERM')
      const onLog = await digestsOnLog(mayfly.dataDir)
      mayfly = await mayfly.restart()
      const whole = await until('every record', async () => {
        const downloaded = await downloadLog(mayfly, log).catch(() => null)
        return downloaded !== null && downloaded.size >= Object.keys(onLog).length ? downloaded : null
      })
      const hashes = whole.entries.map(leafHash)
      for (const { size, root } of seen) expect(merkleTreeHash(hashes.slice(0, size))).toEqual(root)
      expect(new Set(seen.map(({ size }) => size)).size).toBeGreaterThanOrEqual(ROUNDS)
      const digests = whole.leaves.map(({ topic, partition, offset, record_sha256 }): [string, string] => [
        `${topic}/${partition}/${offset}`,
        record_sha256,
      ])
      expect(new Map(digests).size).toBe(digests.length)
      expect(Object.fromEntries(digests)).toMatchObject(onLog)
    },
    ROUNDS * 60_000,
  )
})

/** The digest of each record that is in the log of the only account, by its position. */
async function digestsOnLog(dataDir: string): Promise<Record<string, string>> {
  const log = await openLog(dataDir)
  const digests: Record<string, string> = {}
  for (const topic of ['inbox-events', 'account-events'] as const) {
    for (const range of (await log.topology(topic)).partitions) {
      for await (const records of log.read(range)) {
        for (const record of records) digests[`${partitionName(range)}/${record.offset}`] = digestOf(record)
      }
    }
  }
  await log.close()
  return digests
}

describe('a checkpoint of an audit log that does not grow', () => {
  it('is signed again after ten minutes', async () => {
    const folder = await makeFolder()
    const mayfly = await startWithClock(folder.path, Date.now())
    try {
      await mayfly.runAhead(0)
      const log: AuditLogJson = await auditLogOf(mayfly)
      const read = async () =>
        verifyCheckpoint((await fileOf(mayfly, `${log.id}/checkpoint`)).toString(), log.public_key)
      await until('the first checkpoint', () => read().catch(() => null))
      await mayfly.skip(15_000)
      const whole = await until('a checkpoint of all', async () => {
        const checkpoint = await read()
        return checkpoint.size === (await auditLogOf(mayfly)).size && checkpoint
      })
      await mayfly.skip(9 * 60_000)
      expect(await read()).toEqual(whole)
      await mayfly.skip(2 * 60_000)
      const again = await read()
      expect(again).toEqual({ ...whole, cosignedAt: again.cosignedAt })
      expect(again.cosignedAt - whole.cosignedAt).toBeGreaterThanOrEqual(600)
    } finally {
      await mayfly.close()
      await folder.remove()
    }
  })
})
