import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { closeLmdbFile, commit, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { appendTo, Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import { appendDeadLetter } from '#libs/ports/event-log/batch-decoding.js'
import {
  keyIn,
  PARTITIONS,
  rangeOf,
  record,
  recordsOf,
  textOf,
} from '#libs/ports/event-log/event-log-harness.contract.js'
import type { StoredRecord } from '#libs/ports/event-log/event-log.js'
import { describeEventLog } from '#libs/ports/event-log/event-log.contract.js'
import { openLmdbEventLog, type LmdbEventLogOptions } from './lmdb-event-log.js'

async function makeLog(options: Partial<LmdbEventLogOptions> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-log-'))
  const open = (changed: Partial<LmdbEventLogOptions> = {}) =>
    openLmdbEventLog({
      path: join(dir, 'log.mdb'),
      partitions: PARTITIONS,
      retentionMs: () => null,
      now: () => new Date(),
      onPruneError: (error) => {
        throw error
      },
      ...options,
      ...changed,
    })
  const harness = {
    path: join(dir, 'log.mdb'),
    log: await open(),
    open,
    async reopen() {
      await harness.log.close()
      harness.log = await open()
      return harness.log
    },
    async close() {
      await harness.log.close()
      await rm(dir, { recursive: true })
    },
  }
  return harness
}

/** Replaces the row of an offset in partition 1 of inbox-events. */
async function damage(harness: Awaited<ReturnType<typeof makeLog>>, offset: number, bytes: Buffer) {
  await harness.log.close()
  const root = openLmdbFile<unknown, string>({ path: harness.path, syncMode: 'before-visible', maxDbs: 32 })
  const rows = root.openDB<Buffer, [number, number]>({ name: 'inbox-events', encoding: 'binary' })
  await commit(root, () => rows.putSync([1, offset], bytes))
  await closeLmdbFile(root)
  harness.log = await harness.open()
}

describeEventLog('LMDB', makeLog)

describe('LMDB event log', () => {
  it('is not opened with another number of partitions, and says why', async () => {
    const harness = await makeLog()
    await harness.log.close()
    await expect(harness.open({ partitions: PARTITIONS + 1 })).rejects.toThrow(
      `has ${PARTITIONS} partitions, not ${PARTITIONS + 1}; another number would split an inbox's order`,
    )
    harness.log = await harness.open()
    await harness.close()
  })

  it('reads every record, in memory or only in the file', async () => {
    const harness = await makeLog()
    const texts = Array.from({ length: 12 }, (_, n) => `${n}`.repeat(1 << 20))
    for (const text of texts) await harness.log.append('inbox-events', record(keyIn(1), text))
    const { end } = await rangeOf(harness.log, 'inbox-events', 1)
    for (let first = 0; first < end; first++) {
      const rest = await recordsOf(harness.log, { topic: 'inbox-events', partition: 1, first, end })
      expect(rest.map(({ offset }) => offset)).toEqual([...texts.keys()].slice(first))
      expect(rest.map(textOf).every((text, n) => text === texts[first + n])).toBe(true)
    }
    await harness.close()
  })
})

describe('LMDB event log: consumers', () => {
  it('of several groups share the records', async () => {
    const harness = await makeLog()
    const [one, other] = [new Arrivals(), new Arrivals()]
    const records: StoredRecord[] = []
    const sharing = (group: string, arrivals: Arrivals) =>
      consumerOf(arrivals, {
        group,
        handle(batch) {
          records.push(...batch.records)
          arrivals.take(batch)
          return Promise.resolve('done')
        },
      })
    await harness.log.consume(sharing('one', one))
    await harness.log.consume(sharing('other', other))
    await appendTo(harness.log, 1, 'a', 'b')
    await one.until(() => one.count >= 2)
    await other.until(() => other.count >= 2)
    expect(new Set(records).size).toBe(2)
    await harness.close()
  })

  it('that linger do not wait while they lag', async () => {
    const harness = await makeLog()
    const arrivals = new Arrivals()
    await appendTo(harness.log, 1, 'a', 'b', 'c', 'd', 'e')
    await harness.log.consume(consumerOf(arrivals, { batchRecords: 2, lingerMs: 100_000 }))
    await arrivals.until(() => arrivals.count >= 4)
    expect(arrivals.texts[1]).toEqual(['a', 'b', 'c', 'd'])
    await harness.close()
  })
})

describe('LMDB event log: a damaged row', () => {
  it.each([
    ['can not be decoded', Buffer.from([0xc1])],
    ['has another form', Buffer.from([0x81, 0xa1, 0x74, 0x01])],
  ])('that %s is a record without a type, which consumers set aside', async (_, bytes) => {
    const harness = await makeLog()
    for (const text of ['one', 'two', 'three'])
      await harness.log.append('inbox-events', record(keyIn(1), text))
    await damage(harness, 1, bytes)
    const records = await recordsOf(harness.log, await rangeOf(harness.log, 'inbox-events', 1))
    expect(records.map(textOf)).toEqual(['one', '', 'three'])
    expect(records[1]).toEqual({ offset: 1, key: '', headers: {}, value: Buffer.alloc(0) })
    await harness.close()
  })
})

describe('LMDB event log: retention', () => {
  const DAY_MS = 86_400_000
  let nowMs = 0
  let onPruning: () => void = () => undefined
  let harness: Awaited<ReturnType<typeof makeLog>>

  const append = (text: string) => harness.log.append('inbox-events', record(keyIn(1), text))
  const range = () => rangeOf(harness.log, 'inbox-events', 1)
  const texts = async () => (await recordsOf(harness.log, await range())).map(textOf)

  beforeEach(async () => {
    nowMs = Date.UTC(2026, 0, 1)
    harness = await makeLog({
      now: () => new Date(nowMs),
      retentionMs: (topic) => {
        onPruning()
        return topic === 'account-events' ? null : DAY_MS
      },
    })
  })
  afterEach(() => harness.close())

  it('removes older records, and moves the first offset of the partition', async () => {
    await append('a')
    await append('b')
    nowMs += DAY_MS
    const c = await append('c')
    await harness.log.prune()
    expect(await texts()).toEqual(['a', 'b', 'c'])
    nowMs += 1
    await harness.log.prune()
    expect(await texts()).toEqual(['c'])
    const left = { topic: 'inbox-events', partition: 1, first: c.offset, end: c.offset + 1 }
    expect(await range()).toEqual(left)
    await harness.reopen()
    expect(await range()).toEqual(left)
    expect(await texts()).toEqual(['c'])
  })

  it('keeps a damaged record as long as the next one', async () => {
    await append('a')
    await append('b')
    await damage(harness, 0, Buffer.from([0xc1]))
    await harness.log.prune()
    expect(await texts()).toEqual(['', 'b'])
    nowMs += DAY_MS + 1
    await harness.log.prune()
    expect(await texts()).toEqual([])
  })

  it('never assigns an offset twice, even if nothing is left and the log is reopened', async () => {
    await append('a')
    const { offset } = await append('b')
    nowMs += 2 * DAY_MS
    await harness.log.prune()
    const empty = { topic: 'inbox-events', partition: 1, first: offset + 1, end: offset + 1 }
    expect(await range()).toEqual(empty)
    await harness.reopen()
    expect(await range()).toEqual(empty)
    expect(await append('c')).toMatchObject({ offset: offset + 1 })
  })

  it('removes any number of records, also of topics that were not used since the start', async () => {
    await Promise.all(Array.from({ length: 2_500 }, (_, n) => append(`${n}`)))
    const { end } = await range()
    const stored = { ...record('k', 'bad'), offset: 0 }
    await appendDeadLetter(harness.log, { topic: 'inbox-events', partition: 1 }, stored, 'undecodable')
    await harness.log.append('account-events', record('k', 'kept'))
    nowMs += 2 * DAY_MS
    await harness.reopen()
    await harness.log.prune()
    expect(await range()).toMatchObject({ first: end, end })
    expect((await harness.log.topology('inbox-events.dead-letter')).partitions).toMatchObject([
      { first: 1, end: 1 },
    ])
    expect((await harness.log.topology('account-events')).partitions).toMatchObject([{ first: 0, end: 1 }])
  })

  it('stops if the log is closed', async () => {
    await Promise.all(Array.from({ length: 2_500 }, (_, n) => append(`${n}`)))
    nowMs += 2 * DAY_MS
    const started = new Promise<void>((resolve) => (onPruning = resolve))
    const pruned = harness.log.prune()
    await started
    await harness.reopen()
    await pruned
    await harness.log.prune()
    expect(await texts()).toEqual([])
  })

  it('moves consumers from a removed offset to the first record', async () => {
    await append('a')
    nowMs += 2 * DAY_MS
    await append('b')
    await harness.log.prune()
    const arrived = Promise.withResolvers<string[]>()
    const consumer = await harness.log.consume({
      group: 'group',
      topic: 'inbox-events',
      startAt: () => Promise.resolve({ offset: 0 }),
      handle({ records }) {
        arrived.resolve(records.map(textOf))
        return Promise.resolve('done')
      },
      onError: arrived.reject,
    })
    expect(await arrived.promise).toEqual(['b'])
    await consumer.stop()
  })
})
