import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LogUnavailableError, type LogRecord, type Position } from '#libs/ports/event-log/event-log.js'
import { usageEventCodec } from '#libs/ports/event-log/cloud-event.js'
import { openLmdbEventLog, type LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { MAX_SHARED, type ApiRequestServed, type MailAccepted } from '#libs/domain/usage/usage-events.js'
import { UsageRecorder } from './usage-recorder.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const keyId = idFromBytes('key', Buffer.alloc(16, 1))
/** An object with more fields than a tenant has. They must not get into the record. */
const tenant = { accountId, environment: 'staging', id: 'inb_foreign', keyId: 'key_foreign' }

function served(status: number): ApiRequestServed {
  return {
    ...{
      type: 'ApiRequestServed',
      count: 1,
      keyId,
      method: 'GET',
      route: '/v1/inboxes',
      status,
      isRefused: false,
    },
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
    log = await openLmdbEventLog({
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

  async function recordedEvents() {
    const events = (await recorded()).map(({ event }) => event)
    return events.flatMap((event) => (event.type === 'UsageRecorded' ? event.events : [event]))
  }

  it('appends what was recorded, as events of the tenant', async () => {
    const recorder = recorderOn(append)
    recorder.record(served(200), tenant)
    await recorder.close()
    expect(await recorded()).toMatchObject([
      { accountId, environment: 'staging', keyId, source: '/mayfly/api', event: served(200) },
    ])
    expect(lost).toBe(0)
  })

  it('appends the events of a key and environment together, in their order', async () => {
    const recorder = recorderOn(append, 60_000)
    const other = { ...served(200), keyId: idFromBytes('key', Buffer.alloc(16, 2)) }
    const statuses = Array.from({ length: 100 }, (_, index) => 200 + index)
    for (const status of statuses) recorder.record(served(status), tenant)
    recorder.record(other, tenant)
    recorder.record(served(200), { ...tenant, environment: 'production' })
    await recorder.close()
    const all = await recorded()
    const ofKey = all.filter((each) => each.keyId === keyId && each.environment === 'staging')
    expect(ofKey.map(({ event }) => (event.type === 'UsageRecorded' ? event.events.length : 1))).toEqual([
      40, 40, 20,
    ])
    expect(ofKey.flatMap(({ event }) => (event.type === 'UsageRecorded' ? event.events : [event]))).toEqual(
      statuses.map((status) => served(status)),
    )
    const single = all.filter((each) => !ofKey.includes(each))
    expect(single).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ keyId: other.keyId, environment: 'staging', event: other }),
        expect.objectContaining({ keyId, environment: 'production', event: served(200) }),
      ]),
    )
    expect(single).toHaveLength(2)
  })

  it('appends an event again, with the same id, if the log rejected it', async () => {
    const ids = new Map<string, number>()
    const recorder = recorderOn((record) => {
      const id = record.headers.ce_id ?? ''
      const tries = (ids.get(id) ?? 0) + 1
      ids.set(id, tries)
      return tries > 2 ? append(record) : Promise.reject(new LogUnavailableError('unavailable'))
    })
    for (const n of [1, 2, 3]) {
      recorder.record({ ...served(200), keyId: idFromBytes('key', Buffer.alloc(16, n)) }, tenant)
    }
    while ((await recorded()).length < 3) await new Promise(setImmediate)
    expect([...ids.values()]).toEqual([3, 3, 3])
    expect(lost).toBe(0)
  })

  it('appends an event that counts several requests alone', async () => {
    const recorder = recorderOn(append, 60_000)
    const shared = { ...served(429), isRefused: true, count: 7 }
    for (const event of [served(200), shared, served(201)]) recorder.record(event, tenant)
    await recorder.close()
    const found = (await recorded()).map(({ event }) =>
      event.type === 'UsageRecorded' ? event.events : event,
    )
    expect(found).toHaveLength(2)
    expect(found).toEqual(expect.arrayContaining([shared, [served(200), served(201)]]))
  })

  it('appends the same records again and again while the log is unavailable, so that few wait encoded', async () => {
    const tries = new Map<string, number>()
    const recorder = recorderOn(({ headers: { ce_id: id = '' } }) => {
      tries.set(id, (tries.get(id) ?? 0) + 1)
      return Promise.reject(new LogUnavailableError('unavailable'))
    }, 1)
    for (let n = 0; n < 2_000; n += 1) recorder.record(served(200), tenant)
    while ([...tries.values()].every((count) => count < 5)) await new Promise(setImmediate)
    expect(tries.size).toBe(Math.ceil(500 / 40))
  })

  describe('of refused requests', () => {
    const refused = (facts: Partial<ApiRequestServed> = {}): ApiRequestServed => ({
      ...served(429),
      ...{ isRefused: true, ...facts },
    })

    it('appends one event for similar requests of a key, with the mean of their times', async () => {
      const recorder = recorderOn(append, 60_000)
      const times = [1, 2, 6, 7]
      for (const durationMs of times) recorder.record(refused({ durationMs }), tenant)
      recorder.record(served(200), tenant)
      await recorder.close()
      const events = await recordedEvents()
      expect(events).toHaveLength(2)
      expect(events).toEqual(expect.arrayContaining([refused({ count: 4, durationMs: 4 }), served(200)]))
    })

    it('names an inbox only if all requests are about it', async () => {
      const recorder = recorderOn(append, 60_000)
      const one = idFromBytes('inb', Buffer.alloc(16, 1))
      const other = idFromBytes('inb', Buffer.alloc(16, 2))
      for (const inboxId of [one, one]) recorder.record(refused({ method: 'GET', inboxId }), tenant)
      for (const inboxId of [one, other]) recorder.record(refused({ method: 'PATCH', inboxId }), tenant)
      await recorder.close()
      const events = await recordedEvents()
      expect(events).toHaveLength(2)
      expect(events).toContainEqual(refused({ count: 2, method: 'GET', inboxId: one }))
      expect(events).toContainEqual(refused({ count: 2, method: 'PATCH', inboxId: null }))
    })

    it('appends an event of its own for each key, route, method and labels', async () => {
      const recorder = recorderOn(append, 60_000)
      const kinds: Partial<ApiRequestServed>[] = [
        { keyId: idFromBytes('key', Buffer.alloc(16, 2)) },
        { method: 'POST' },
        { route: '/v1/inboxes/{id}' },
        { labels: { run: '43' } },
      ]
      for (const kind of [...kinds, ...kinds]) recorder.record(refused(kind), tenant)
      await recorder.close()
      const events = await recordedEvents()
      expect(events).toHaveLength(kinds.length)
      expect(events).toEqual(expect.arrayContaining(kinds.map((kind) => refused({ ...kind, count: 2 }))))
    })

    it('limits the events of a key whose inboxes have many labels, and counts every request', async () => {
      const recorder = recorderOn(append, 60_000)
      const requests = 5_000
      for (let n = 0; n < requests; n += 1) {
        recorder.record(refused({ labels: { run: String(n % 200) } }), tenant)
      }
      await recorder.close()
      const events = (await recordedEvents()).filter((event) => event.type === 'ApiRequestServed')
      expect(events.length).toBeLessThanOrEqual(11 + requests / MAX_SHARED)
      expect(events.reduce((sum, { count }) => sum + count, 0)).toBe(requests)
      const others = events.filter(({ route }) => route === 'unknown')
      expect(others.length).toBeGreaterThan(0)
      for (const other of others) expect(other).toMatchObject({ inboxId: null, labels: {} })
    })

    it('adds nothing to an event that is being appended', async () => {
      const appended: LogRecord[] = []
      const release = Promise.withResolvers<undefined>()
      const recorder = recorderOn(async (record) => {
        appended.push(record)
        await release.promise
        return append(record)
      })
      recorder.record(refused(), tenant)
      while (appended.length === 0) await new Promise(setImmediate)
      recorder.record(refused(), tenant)
      release.resolve(undefined)
      await recorder.close()
      expect(await recordedEvents()).toEqual([refused(), refused()])
    })
  })

  describe('of times of mails', () => {
    const accepted = (facts: Partial<MailAccepted> = {}): MailAccepted => ({
      ...{ type: 'MailAccepted', keyId, labels: { run: '42' }, ms: [1.5] },
      ...{ at: new Date('2026-11-21T12:00:00.000Z'), ...facts },
    })

    it('appends one event for the mails of a key with the same labels in the same second', async () => {
      const recorder = recorderOn(append, 60_000)
      const last = new Date('2026-11-21T12:00:00.999Z')
      for (const mail of [{ ms: [1] }, { ms: [3], at: last }, { ms: [2] }])
        recorder.record(accepted(mail), tenant)
      await recorder.close()
      expect(await recordedEvents()).toEqual([accepted({ ms: [1, 3, 2] })])
    })

    it('appends an event for each kind, key, environment, labels and second', async () => {
      const recorder = recorderOn(append, 60_000)
      const shown = { ...accepted(), type: 'MessageShown' } as const
      const kinds = [
        accepted(),
        shown,
        accepted({ keyId: idFromBytes('key', Buffer.alloc(16, 2)) }),
        accepted({ labels: { run: '43' } }),
        accepted({ at: new Date('2026-11-21T12:00:01.000Z') }),
      ]
      for (const event of [...kinds, ...kinds]) recorder.record(event, tenant)
      recorder.record(accepted(), { ...tenant, environment: 'production' })
      await recorder.close()
      const events = await recordedEvents()
      const expected = [...kinds.map((event) => ({ ...event, ms: [1.5, 1.5] })), accepted()]
      expect(events).toHaveLength(expected.length)
      expect(events).toEqual(expect.arrayContaining(expected))
    })

    it('appends events of at most so many mails, each alone, and adds nothing to one that is being appended', async () => {
      const release = Promise.withResolvers<undefined>()
      let appending = 0
      const recorder = recorderOn(async (record) => {
        appending += 1
        await release.promise
        return append(record)
      })
      const times = Array.from({ length: MAX_SHARED + 2 }, (_, index) => index)
      for (const ms of times) recorder.record(accepted({ ms: [ms] }), tenant)
      while (appending < 2) await new Promise(setImmediate)
      recorder.record(accepted({ ms: [7] }), tenant)
      release.resolve(undefined)
      await recorder.close()
      const events = (await recorded()).map(({ event }) => ('ms' in event ? event.ms : []))
      expect(events).toHaveLength(3)
      expect(events).toEqual(
        expect.arrayContaining([times.slice(0, MAX_SHARED), times.slice(MAX_SHARED), [7]]),
      )
    })
  })

  it('drops the oldest events while the log is unavailable for long, and the rest at the close, and counts them', async () => {
    const recorder = recorderOn(() => Promise.reject(new LogUnavailableError('unavailable')), 60_000)
    for (let n = 0; n < 50_000; n += 1) recorder.record(served(200), tenant)
    expect(lost).toBe(0)
    recorder.record(served(200), tenant)
    expect(lost).toBeGreaterThan(0)
    await recorder.close()
    expect(lost).toBe(50_001)
  })
})
