import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { after, ACCOUNT, KEY, NOON } from '#libs/ports/usage/usage-harness.contract.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { CountedUpTo } from './counted-up-to.js'

describe('the time up to which usage is counted', () => {
  let folder: string
  let log: LmdbEventLog
  let store: UsageStore
  let now: Date
  let countedUpTo: CountedUpTo

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-counted-'))
    log = await openLmdbEventLog({
      path: join(folder, 'log.mdb'),
      partitions: 4,
      retentionMs: () => null,
      now: () => now,
      onPruneError: () => undefined,
    })
    const opened = await openChdbUsage(join(folder, 'usage'))
    if (opened === null) throw new Error('chDB is not installed')
    store = opened
    await store.prepare()
    now = NOON
    countedUpTo = new CountedUpTo({ log, sink: store.sink, now: () => now, onError: () => undefined })
  })
  afterEach(async () => {
    await store.close()
    await log.close()
    await rm(folder, { recursive: true })
  })

  async function append(): Promise<void> {
    const about = { id: mintId('evt'), time: now, source: '/mayfly/api', accountId: ACCOUNT }
    const event = {
      ...{
        type: 'ApiRequestServed' as const,
        count: 1,
        keyId: KEY,
        method: 'GET',
        route: '/v1/inboxes',
        status: 200,
      },
      ...{ isRefused: false, durationMs: 1, requestBytes: 0, responseBytes: 0, inboxId: null, labels: {} },
      servedAt: now,
    }
    const recorded = { ...about, environment: 'staging', keyId: KEY, event }
    await log.append('usage-events', usageEventCodec.encode(recorded))
  }

  /** Counts everything on the log, as analytics does. */
  async function countAll(): Promise<void> {
    const { logId, partitions } = await log.topology('usage-events')
    const ranges = partitions.filter(({ first, end }) => end > first)
    await store.sink.write({ logId, topic: 'usage-events', ranges, rows: [] })
  }

  async function sampleAt(at: Date): Promise<void> {
    now = at
    await countedUpTo.sample()
  }

  it('is null before the log has been sampled', async () => {
    expect(await countedUpTo.find()).toBeNull()
  })

  it('is a second ago if everything is counted', async () => {
    await sampleAt(after(5_000))
    expect(await countedUpTo.find()).toEqual(after(4_000))
    await append()
    await countAll()
    await sampleAt(after(6_000))
    expect(await countedUpTo.find()).toEqual(after(5_000))
  })

  it('does not advance while an event on the log is not counted', async () => {
    await sampleAt(after(5_000))
    await append()
    await sampleAt(after(6_000))
    await append()
    await sampleAt(after(7_000))
    expect(await countedUpTo.find()).toEqual(after(4_000))
    await countAll()
    expect(await countedUpTo.find()).toEqual(after(6_000))
  })

  it('is null while counting is more than a minute behind', async () => {
    await sampleAt(after(0))
    await append()
    for (let second = 1; second <= 60; second += 1) await sampleAt(after(second * 1_000))
    expect(await countedUpTo.find()).toBeNull()
  })
})
