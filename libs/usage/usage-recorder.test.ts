import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LogUnavailableError, type LogRecord, type Position } from '#libs/event-log/event-log.js'
import { usageEventCodec } from '#libs/event-log/usage-events.js'
import { LmdbEventLog } from '#libs/event-log/lmdb/lmdb-event-log.js'
import { idFromBytes } from '#libs/typeid/typeid.js'
import type { UsageEvent } from './events.js'
import { UsageRecorder } from './usage-recorder.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const keyId = idFromBytes('key', Buffer.alloc(16, 1))
/** More than an event's tenant: what else it has must not get into the record. */
const tenant = { accountId, environment: 'staging', id: 'inb_foreign', keyId: 'key_foreign' }

function served(status: number): UsageEvent {
  return {
    ...{ type: 'ApiRequestServed', keyId, method: 'GET', route: '/v1/inboxes', status, isRefused: false },
    ...{ durationMs: 1.5, requestBytes: 0, responseBytes: 10, inboxId: null, labels: { run: '42' } },
    servedAt: new Date('2026-11-21T12:00:00.000Z'),
  }
}

describe('the recorder of usage events', () => {
  let folder: string
  let log: LmdbEventLog
  let lost: number
  const recorders: UsageRecorder[] = []

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-recorder-'))
    lost = 0
    log = await LmdbEventLog.open({
      path: join(folder, 'log.mdb'),
      partitions: 2,
      retentionMs: () => null,
      now: () => new Date(),
      onPruneError: () => undefined,
    })
  })

  afterEach(async () => {
    await Promise.all(recorders.splice(0).map((recorder) => recorder.close()))
    await log.close()
    await rm(folder, { recursive: true, force: true })
  })

  function recorderOn(append: (record: LogRecord) => Promise<Position>, everyMs = 5): UsageRecorder {
    const recorder = new UsageRecorder({
      log: { append: (_, record) => append(record) },
      source: '/mayfly/api',
      now: () => new Date(),
      onLost: (count) => (lost += count),
      everyMs,
    })
    recorders.push(recorder)
    return recorder
  }

  const append = (record: LogRecord) => log.append('usage-events', record)

  async function recorded() {
    const { partitions } = await log.topology('usage-events')
    const found = []
    for (const range of partitions) {
      for await (const records of log.read(range))
        found.push(...records.map((r) => usageEventCodec.decode(r)))
    }
    return found.map((each) => {
      if (each.kind !== 'event') throw new Error(`a record is ${each.kind}`)
      return each.recorded
    })
  }

  it('appends what was recorded, as events of its tenant', async () => {
    const recorder = recorderOn(append)
    recorder.record(served(200), tenant)
    await recorder.close()
    expect(await recorded()).toMatchObject([
      { accountId, environment: 'staging', keyId, source: '/mayfly/api', event: served(200) },
    ])
    expect(lost).toBe(0)
  })

  it('appends what the log did not take again, under the same event id', async () => {
    const ids = new Map<string, number>()
    const recorder = recorderOn((record) => {
      const id = record.headers.ce_id ?? ''
      const tries = (ids.get(id) ?? 0) + 1
      ids.set(id, tries)
      return tries > 2 ? append(record) : Promise.reject(new LogUnavailableError('away'))
    })
    for (const status of [200, 201, 202]) recorder.record(served(status), tenant)
    while ((await recorded()).length < 3) await new Promise(setImmediate)
    expect([...ids.values()]).toEqual([3, 3, 3])
    expect(lost).toBe(0)
  })

  it('gives up the oldest where the log is away for long, and the rest at its end, and counts them', async () => {
    const recorder = recorderOn(() => Promise.reject(new LogUnavailableError('away')), 60_000)
    for (let n = 0; n < 50_000; n += 1) recorder.record(served(200), tenant)
    expect(lost).toBe(0)
    recorder.record(served(200), tenant)
    expect(lost).toBeGreaterThan(0)
    await recorder.close()
    expect(lost).toBe(50_001)
  })
})
