import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pLimit from 'p-limit'
import pino from 'pino'
import { Registry } from 'prom-client'
import { NotAssignedError, type LogRecord, type Consumer } from '#libs/ports/event-log/event-log.js'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { chdbClient } from '#libs/engines/clickhouse/clients.js'
import { clickHouseUsageSink, openChdbUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import type { UsageBatch, UsageSink, UsageStore } from '#libs/ports/usage/usage-store.js'
import { until } from '#test/harness/until.js'
import { startAnalytics } from './analytics.js'
import { writeRanges } from './batches-in-doubt.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const AT = new Date()

describe('the sink of usage rows', () => {
  let folder: string
  let log: LmdbEventLog
  let store: UsageStore
  const stacks: AsyncDisposableStack[] = []

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-analytics-'))
    log = await openLmdbEventLog({
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
    await Promise.all(stacks.splice(0).map((running) => running.disposeAsync()))
    await log.close()
    await store.close()
    await rm(folder, { recursive: true, force: true })
  })

  interface Faults {
    write?: UsageSink['write']
    /** Whether its partitions are assigned to another process of the group. */
    isUnassigned?: () => boolean
    prepare?: UsageStore['prepare']
    consume?: LmdbEventLog['consume']
    append?: LmdbEventLog['append']
  }

  async function start(faults: Faults = {}): Promise<AsyncDisposableStack> {
    const { write = (batch) => store.sink.write(batch), isUnassigned = () => false, append } = faults
    const prepare = faults.prepare ?? (() => store.prepare())
    const sink: UsageSink = { writtenTo: (logId, topic) => store.sink.writtenTo(logId, topic), write }
    const usage = { ...store, sink, prepare }
    const logger = pino({ level: 'silent' })
    const consume: LmdbEventLog['consume'] = async (spec) => {
      const consumer = await (faults.consume?.(spec) ?? log.consume(spec))
      const commit: typeof consumer.commit = (places) =>
        isUnassigned()
          ? Promise.reject(new NotAssignedError('assigned to another process'))
          : consumer.commit(places)
      return Object.create(consumer, { commit: { value: commit } }) as Consumer
    }
    const changed = { consume: { value: consume }, ...(append && { append: { value: append } }) }
    const engine = { log: Object.create(log, changed) as LmdbEventLog, usage }
    const running = new AsyncDisposableStack()
    stacks.push(running)
    await startAnalytics({ engine, logger, registry: new Registry(), running })
    return running
  }

  /** Requests of several keys, so that they are in several partitions, and as many refused mails. */
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

  async function expectCount(expected: number): Promise<void> {
    const inEach = () => Promise.all((['second', 'minute', 'hour', 'day'] as const).map(counted))
    // The tables are written in sequence.
    await until(`${expected} to be counted everywhere`, async () =>
      (await inEach()).every(({ requests, refusals }) => requests >= expected && refusals >= expected),
    )
    expect(await inEach()).toEqual(Array(4).fill({ requests: expected, refusals: expected }))
  }

  it('counts every event once, including earlier ones, and continues there after a restart', async () => {
    await append(events(100))
    const analytics = await start()
    await expectCount(100)
    await append(events(20))
    await analytics.disposeAsync()
    stacks.length = 0
    await append(events(3))
    await start()
    await expectCount(123)
  })

  it('counts an event once that was appended twice, in one batch or in two', async () => {
    const [one, two] = [events(10), events(10)]
    await append([...one, ...one])
    const analytics = await start()
    await expectCount(10)
    await append([...one, ...two])
    await expectCount(20)
    await analytics.disposeAsync()
    stacks.length = 0
    await append([...two, ...events(1)])
    await start()
    await expectCount(21)
  })

  it('repeats a write whose response was lost, and counts it once', async () => {
    let faults = 0
    await start({
      async write(batch) {
        await store.sink.write(batch)
        faults += 1
        if (faults < 3) throw new Error('the response was lost')
      },
    })
    await append(events(50))
    await expectCount(50)
    await until('the repeats', () => faults >= 3)
    await expectCount(50)
  })

  /** Writes the rows of one table, but not those of the other, and no offsets. */
  async function writeHalf(batch: UsageBatch): Promise<void> {
    const client = await chdbClient(join(folder, 'usage', 'tables'))
    if (client === null) throw new Error('chDB is not installed')
    await client.command({ query: 'USE mayfly' })
    const exec: typeof client.exec = (params) =>
      params.query.startsWith('INSERT INTO requests ')
        ? client.exec(params)
        : Promise.reject(new Error('killed'))
    const half = clickHouseUsageSink(
      Object.create(client, { exec: { value: exec } }) as typeof client,
      pLimit(1),
    )
    await expect(half.write(batch)).rejects.toThrow('killed')
    await client.close()
  }

  // A process that hangs and loses its partitions leaves what a killed process leaves.
  it.each([
    { left: 'nothing', write: () => Promise.resolve(), inDoubt: 1 },
    { left: 'half of the rows', write: writeHalf, inDoubt: 1 },
    { left: 'all rows', write: (batch: UsageBatch) => store.sink.write(batch), inDoubt: 0 },
  ])(
    'takes over from a process that hangs after writing $left and later resumes',
    async ({ write, inDoubt }) => {
      const hanging = Promise.withResolvers<undefined>()
      const hung: UsageBatch[] = []
      let isUnassigned = false
      await start({
        async write(batch) {
          if (hung.length === 0) await write(batch)
          hung.push(batch)
          await hanging.promise
          await store.sink.write(batch)
        },
        isUnassigned: () => isUnassigned,
      })
      await append(events(40))
      await until('the process to hang', () => hung.length > 0)
      await append(events(5))
      isUnassigned = true
      const written: UsageBatch[] = []
      await start({
        write(batch) {
          written.push(batch)
          return store.sink.write(batch)
        },
      })
      await expectCount(45)
      // The batch in doubt is repeated with the same ranges of all its partitions.
      const note = writeRanges(hung[0]?.ranges ?? [])
      const repeats = written.filter(({ ranges }) => writeRanges(ranges) === note)
      hanging.resolve(undefined)
      await append(events(2))
      await expectCount(47)
      expect(repeats).toHaveLength(inDoubt)
    },
  )

  it('refills an emptied store from the log', async () => {
    const analytics = await start()
    await append(events(30))
    await expectCount(30)
    await analytics.disposeAsync()
    stacks.length = 0
    await store.close()
    await rm(join(folder, 'usage'), { recursive: true })
    const emptied = await openChdbUsage(join(folder, 'usage'))
    if (emptied === null) throw new Error('chDB is not installed')
    store = emptied
    await append(events(1))
    await start()
    await expectCount(31)
  })

  it('writes a record that can not be decoded to the dead letters, and continues', async () => {
    const [good] = events(1)
    if (good === undefined) throw new Error('there is no record')
    await append([{ ...good, value: Buffer.from('no JSON') }])
    await append(events(2))
    await start()
    await expectCount(2)
    const { partitions } = await log.topology('usage-events.dead-letter')
    expect(partitions.map(({ end }) => end)).toEqual([1])
  })

  it('starts to count once both the store and the log are available', async () => {
    let prepared = 0
    let consumed = 0
    await start({
      prepare() {
        prepared += 1
        return prepared === 1 ? Promise.reject(new Error('the store is unavailable')) : store.prepare()
      },
      consume(spec) {
        consumed += 1
        return consumed === 2 ? Promise.reject(new Error('the log is unavailable')) : log.consume(spec)
      },
    })
    await append(events(5))
    // Each of the three topics once, and the second one again.
    await until('all topics to be consumed', () => consumed === 4)
    await expectCount(5)
  })

  it('closes while the store hangs', async () => {
    let prepared = 0
    const analytics = await start({
      prepare() {
        prepared += 1
        return prepared === 1
          ? Promise.reject(new Error('the store is unavailable'))
          : new Promise(() => undefined)
      },
    })
    await until('the store to hang', () => prepared > 1)
    await analytics.disposeAsync()
  })

  it('counts the other events of a batch whose dead letter was appended at the second attempt', async () => {
    const records = events(2)
    const [good] = records
    if (good === undefined) throw new Error('there is no record')
    await append([{ ...good, value: Buffer.from('no JSON') }, ...records])
    let faults = 0
    const failOnce: LmdbEventLog['append'] = (...args) => {
      faults += 1
      return faults === 1 ? Promise.reject(new Error('the log is unavailable')) : log.append(...args)
    }
    await start({ append: failOnce })
    await expectCount(2)
    expect(faults).toBe(2)
  })
})
