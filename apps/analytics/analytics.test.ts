import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pLimit from 'p-limit'
import pino from 'pino'
import { Registry } from 'prom-client'
import { NotAssignedError, type LogRecord, type Consumer } from '#libs/ports/event-log/event-log.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { ClickHouseUsageSink } from '#libs/engines/clickhouse/clickhouse-usage-sink.js'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import type { UsageBatch, UsageSink, UsageStore } from '#libs/ports/usage/usage-store.js'
import { until } from '#test/harness/until.js'
import { startAnalytics, type Analytics } from './analytics.js'
import { writeRanges } from './batches-in-doubt.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const AT = new Date()

describe('the sink of usage figures', () => {
  let folder: string
  let log: LmdbEventLog
  let store: UsageStore
  const running: Analytics[] = []

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-analytics-'))
    log = await LmdbEventLog.open({
      path: join(folder, 'log.mdb'),
      partitions: 4,
      retentionMs: () => null,
      now: () => new Date(),
      onPruneError: () => undefined,
    })
    const opened = await openChdbUsage(join(folder, 'usage'))
    if (opened === null) throw new Error('chDB is not installed')
    store = opened
  })

  afterEach(async () => {
    await Promise.all(running.splice(0).map((analytics) => analytics.close()))
    await log.close()
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })

  interface Faults {
    write?: UsageSink['write']
    /** Whether its partitions have become another's, as a group of processes has it. */
    isOut?: () => boolean
    prepare?: UsageStore['prepare']
    consume?: LmdbEventLog['consume']
    append?: LmdbEventLog['append']
  }

  async function start(faults: Faults = {}): Promise<Analytics> {
    const { write = (batch) => store.sink.write(batch), isOut = () => false, append } = faults
    const prepare = faults.prepare ?? (() => store.prepare())
    const sink: UsageSink = { writtenTo: (logId, topic) => store.sink.writtenTo(logId, topic), write }
    const usage = { ...store, sink, prepare }
    const logger = pino({ level: 'silent' })
    const consume: LmdbEventLog['consume'] = async (spec) => {
      const consumer = await (faults.consume?.(spec) ?? log.consume(spec))
      const commit: typeof consumer.commit = (places) =>
        isOut() ? Promise.reject(new NotAssignedError('another has them')) : consumer.commit(places)
      return Object.create(consumer, { commit: { value: commit } }) as Consumer
    }
    const changed = { consume: { value: consume }, ...(append && { append: { value: append } }) }
    const engine = { log: Object.create(log, changed) as LmdbEventLog, usage }
    const analytics = await startAnalytics({ engine, logger, registry: new Registry() })
    running.push(analytics)
    return analytics
  }

  /** Requests of several keys, and so in several partitions, and as many refused mails. */
  function events(count: number): LogRecord[] {
    return Array.from({ length: count }, (_, n) => {
      const keyId = idFromBytes('key', Buffer.alloc(16, n % 8))
      const request: UsageEvent = {
        ...{ type: 'ApiRequestServed', count: 1, keyId, method: 'GET', route: '/v1/inboxes', status: 200 },
        ...{ isRefused: false, durationMs: 1, requestBytes: 0, responseBytes: 0, inboxId: null, labels: {} },
        servedAt: AT,
      }
      const inboxId = idFromBytes('inb', Buffer.alloc(16, 1))
      const refused: UsageEvent = {
        ...{ type: 'MailRefused', keyId, inboxId, reason: 'inbox-full', code: 552, labels: {} },
        refusedAt: AT,
      }
      return [request, refused].map((event) =>
        usageEventCodec.encode({
          ...{ id: mintId('evt'), time: AT, source: '/mayfly/api', accountId, environment: 'staging' },
          ...{ keyId, event },
        }),
      )
    }).flat()
  }

  async function append(records: readonly LogRecord[]): Promise<void> {
    await Promise.all(records.map((record) => log.append('usage-events', record)))
  }

  async function counted(interval: 'second' | 'minute' | 'hour' | 'day') {
    const rows = await store.queries.figures({
      ...{ owner: { accountId, keyId: null }, from: new Date(0), to: new Date(AT.getTime() + 86_400_000) },
      ...{ interval, grouping: { by: 'none' }, labels: [], limit: 10 },
    })
    const { requests = 0, refusals = 0 } = rows?.[0] ?? {}
    return { requests, refusals }
  }

  async function mustCount(expected: number): Promise<void> {
    const inEach = () => Promise.all((['second', 'minute', 'hour', 'day'] as const).map(counted))
    // The tables are written one after the other.
    await until(`${expected} to be counted everywhere`, async () =>
      (await inEach()).every(({ requests, refusals }) => requests >= expected && refusals >= expected),
    )
    expect(await inEach()).toEqual(Array(4).fill({ requests: expected, refusals: expected }))
  }

  it('counts every event once, also those from before its start, and goes on behind them after the next', async () => {
    await append(events(100))
    const analytics = await start()
    await mustCount(100)
    await append(events(20))
    await analytics.close()
    running.length = 0
    await append(events(3))
    await start()
    await mustCount(123)
  })

  it('counts an event once that its appender put on the log twice, in a batch or apart', async () => {
    const [one, two] = [events(10), events(10)]
    await append([...one, ...one])
    const analytics = await start()
    await mustCount(10)
    await append([...one, ...two])
    await mustCount(20)
    await analytics.close()
    running.length = 0
    await append([...two, ...events(1)])
    await start()
    await mustCount(21)
  })

  it('writes a batch again that it was not told of', async () => {
    let faults = 0
    await start({
      async write(batch) {
        await store.sink.write(batch)
        faults += 1
        if (faults < 3) throw new Error('the answer was lost')
      },
    })
    await append(events(50))
    await mustCount(50)
    await until('the repeats', () => faults >= 3)
    await mustCount(50)
  })

  /** Writes what belongs in one table, and not the other, nor where it ends. */
  async function writeHalf(batch: UsageBatch): Promise<void> {
    const client = await chdbClient(join(folder, 'usage', 'tables'))
    if (client === null) throw new Error('chDB is not installed')
    await client.command({ query: 'USE mayfly' })
    const exec: typeof client.exec = (params) =>
      params.query.startsWith('INSERT INTO requests ')
        ? client.exec(params)
        : Promise.reject(new Error('killed'))
    const half = new ClickHouseUsageSink(
      Object.create(client, { exec: { value: exec } }) as typeof client,
      pLimit(1),
    )
    await expect(half.write(batch)).rejects.toThrow('killed')
    await client.close()
  }

  // What a killed process leaves, without the killing: one that goes no further, and whose partitions another takes.
  it.each([
    { left: 'nothing', write: () => Promise.resolve(), inDoubt: 1 },
    { left: 'half of the rows', write: writeHalf, inDoubt: 1 },
    { left: 'all rows', write: (batch: UsageBatch) => store.sink.write(batch), inDoubt: 0 },
  ])(
    'goes on from a process that hangs and has left $left, and may go on yet',
    async ({ write, inDoubt }) => {
      const hanging = Promise.withResolvers<undefined>()
      const hung: UsageBatch[] = []
      let isOut = false
      await start({
        async write(batch) {
          if (hung.length === 0) await write(batch)
          hung.push(batch)
          await hanging.promise
          await store.sink.write(batch)
        },
        isOut: () => isOut,
      })
      await append(events(40))
      await until('it to hang', () => hung.length > 0)
      await append(events(5))
      isOut = true
      const written: UsageBatch[] = []
      await start({
        write(batch) {
          written.push(batch)
          return store.sink.write(batch)
        },
      })
      await mustCount(45)
      // What was in doubt in all partitions, together.
      const left = writeRanges(hung[0]?.ranges ?? [])
      const repeats = written.filter(({ ranges }) => writeRanges(ranges) === left)
      hanging.resolve(undefined)
      await append(events(2))
      await mustCount(47)
      expect(repeats).toHaveLength(inDoubt)
    },
  )

  it('fills a store that was emptied from the log', async () => {
    const analytics = await start()
    await append(events(30))
    await mustCount(30)
    await analytics.close()
    running.length = 0
    await store.close()
    await rm(join(folder, 'usage'), { recursive: true })
    const anew = await openChdbUsage(join(folder, 'usage'))
    if (anew === null) throw new Error('chDB is not installed')
    store = anew
    await append(events(1))
    await start()
    await mustCount(31)
  })

  it('sets aside what can not be decoded, and goes on', async () => {
    const [good] = events(1)
    if (good === undefined) throw new Error('there is no record')
    await append([{ ...good, value: Buffer.from('no JSON') }])
    await append(events(2))
    await start()
    await mustCount(2)
    const { partitions } = await log.topology('usage-events.dead-letter')
    expect(partitions.map(({ end }) => end)).toEqual([1])
  })

  it('begins to count once the store and the log are there, whichever comes last', async () => {
    let asked = 0
    let begun = 0
    await start({
      prepare() {
        asked += 1
        return asked === 1 ? Promise.reject(new Error('the store is away')) : store.prepare()
      },
      consume(spec) {
        begun += 1
        return begun === 2 ? Promise.reject(new Error('the log is away')) : log.consume(spec)
      },
    })
    await append(events(5))
    // Each of the three topics once, and the second one again.
    await until('all topics to be consumed', () => begun === 4)
    await mustCount(5)
  })

  it('ends while the store is waited for', async () => {
    let asked = 0
    const analytics = await start({
      prepare() {
        asked += 1
        return asked === 1 ? Promise.reject(new Error('the store is away')) : new Promise(() => undefined)
      },
    })
    await until('the store to hang', () => asked > 1)
    await analytics.close()
  })

  it('counts what came beside a record that could not be set aside at first', async () => {
    const records = events(2)
    const [good] = records
    if (good === undefined) throw new Error('there is no record')
    await append([{ ...good, value: Buffer.from('no JSON') }, ...records])
    let faults = 0
    const appendAtSecondTry: LmdbEventLog['append'] = (...asked) => {
      faults += 1
      return faults === 1 ? Promise.reject(new Error('the log is away')) : log.append(...asked)
    }
    await start({ append: appendAtSecondTry })
    await mustCount(2)
    expect(faults).toBe(2)
  })
})
