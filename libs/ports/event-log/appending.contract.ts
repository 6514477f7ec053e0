import {
  keyIn,
  PARTITIONS,
  rangeOf,
  record,
  recordsOf,
  textOf,
  type EventLogHarness,
} from './event-log-harness.contract.js'
import { LogUnavailableError, type LogRecord, type PartitionRange } from './event-log.js'
import { appendDeadLetter } from './batch-decoding.js'
import { partitionOf } from './topics.js'

export function describeAppending(current: () => EventLogHarness): void {
  it('returns the position of each record, at which it can be read byte for byte', async () => {
    const { log } = current()
    const sent: LogRecord[] = [
      { key: 'a', headers: { ce_id: '1', note: 'größer als 0' }, value: Buffer.from([0, 255, 13, 10]) },
      { key: 'b', headers: {}, value: Buffer.alloc(0) },
      { key: 'ключ', headers: { ce_id: '3' }, value: Buffer.from('{}') },
    ]
    for (const topic of ['inbox-events', 'account-events'] as const) {
      const positions = await Promise.all(sent.map((each) => log.append(topic, each)))
      for (const [index, { partition, offset }] of positions.entries()) {
        const [stored, ...others] = await recordsOf(log, { topic, partition, first: offset, end: offset + 1 })
        expect(others).toEqual([])
        expect(stored).toMatchObject({ offset, key: sent[index]?.key, headers: sent[index]?.headers })
        expect(Buffer.from(stored?.value ?? [])).toEqual(sent[index]?.value)
      }
    }
  })

  it('chooses the partition as Kafka’s default partitioner does, and one partition for all accounts', async () => {
    const { log } = current()
    for (let n = 0; n < 20; n += 1) {
      const inbox = await log.append('inbox-events', record(`key-${n}`, ''))
      expect(inbox).toMatchObject({ topic: 'inbox-events', partition: partitionOf(`key-${n}`, PARTITIONS) })
      const account = await log.append('account-events', record(`key-${n}`, ''))
      expect(account).toMatchObject({ topic: 'account-events', partition: 0 })
    }
    expect((await log.topology('inbox-events')).partitions).toHaveLength(PARTITIONS)
    expect((await log.topology('account-events')).partitions).toHaveLength(1)
    expect([log.partitionCount('inbox-events'), log.partitionCount('account-events')]).toEqual([
      PARTITIONS,
      1,
    ])
  })

  it('keeps the order of each key with concurrent appends', async () => {
    const { log } = current()
    const sent = Array.from({ length: 300 }, (_, n) => ({ key: `key-${n % 7}`, text: `${n}` }))
    const positions = await Promise.all(
      sent.map(({ key, text }) => log.append('inbox-events', record(key, text))),
    )
    expect(new Set(positions.map(({ partition, offset }) => `${partition}/${offset}`)).size).toBe(sent.length)
    for (let partition = 0; partition < PARTITIONS; partition += 1) {
      const stored = await recordsOf(log, await rangeOf(log, 'inbox-events', partition))
      const expected = sent.filter(({ key }) => partitionOf(key, PARTITIONS) === partition)
      expect(stored.map(textOf)).toEqual(expected.map(({ text }) => text))
      const offsets = stored.map(({ offset }) => offset)
      expect(offsets).toEqual([...offsets].sort((one, other) => one - other))
    }
  })

  it('moves only the end of the record’s partition past it', async () => {
    const { log } = current()
    const before = await log.topology('inbox-events')
    const { offset } = await log.append('inbox-events', record(keyIn(2), 'a'))
    const after = await log.topology('inbox-events')
    for (const [partition, range] of after.partitions.entries()) {
      expect(range).toMatchObject({ topic: 'inbox-events', partition })
      if (partition === 2) expect(range.end).toBeGreaterThan(offset)
      else expect(range).toEqual(before.partitions[partition])
    }
    expect(before.partitions[2]?.end).toBeLessThanOrEqual(offset)
  })

  it('reads a range from its first offset to just before its end, also during appends', async () => {
    const { log } = current()
    const key = keyIn(1)
    const positions = []
    for (const text of ['a', 'b', 'c', 'd', 'e']) {
      positions.push(await log.append('inbox-events', record(key, text)))
    }
    const [, b, , d] = positions.map(({ offset }) => offset)
    const range = await rangeOf(log, 'inbox-events', 1)
    const read = async (bounds: Partial<PartitionRange>) =>
      (await recordsOf(log, { ...range, ...bounds })).map(textOf)
    expect(await read({ first: b ?? NaN, end: d ?? NaN })).toEqual(['b', 'c'])
    expect(await read({ first: b ?? NaN, end: b ?? NaN })).toEqual([])
    await log.append('inbox-events', record(key, 'f'))
    expect(await read({})).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  it('stores a record of 20 MB among small ones', async () => {
    const { log } = current()
    const key = keyIn(0)
    const value = Buffer.alloc(20 << 20, 'mail ')
    const sent = [record(key, 'before'), { key, headers: {}, value }, record(key, 'after')]
    await Promise.all(sent.map((each) => log.append('inbox-events', each)))
    const stored = await recordsOf(log, await rangeOf(log, 'inbox-events', 0))
    expect(stored.map((each) => value.equals(each.value))).toEqual([false, true, false])
  })

  it('stores a dead letter with the reason and the position of the record', async () => {
    const { log } = current()
    const bad = { key: keyIn(3), headers: { ce_type: 'foreign' }, value: Buffer.from([1, 2, 3]) }
    const { topic, partition, offset } = await log.append('inbox-events', bad)
    await appendDeadLetter(log, { topic, partition }, { ...bad, offset }, 'unknown type "foreign"')
    const { partitions } = await log.topology('inbox-events.dead-letter')
    const [aside, ...others] = (await Promise.all(partitions.map((range) => recordsOf(log, range)))).flat()
    expect(others).toEqual([])
    expect(aside).toMatchObject({
      key: bad.key,
      headers: {
        ce_type: 'foreign',
        'dead-letter-reason': 'unknown type "foreign"',
        'dead-letter-origin': `inbox-events/${partition}/${offset}`,
      },
    })
    expect(Buffer.from(aside?.value ?? [])).toEqual(bad.value)
  })

  it('keeps its id, its records and its ends when it is reopened', async () => {
    const harness = current()
    const { offset } = await harness.log.append('inbox-events', record(keyIn(1), 'a'))
    const before = await harness.log.topology('inbox-events')
    const log = await harness.reopen()
    expect(await log.topology('inbox-events')).toEqual(before)
    const next = await log.append('inbox-events', record(keyIn(1), 'b'))
    expect(next.offset).toBeGreaterThan(offset)
    expect((await recordsOf(log, await rangeOf(log, 'inbox-events', 1))).map(textOf)).toEqual(['a', 'b'])
  })

  it('waits for appends in progress when it closes, and rejects others', async () => {
    const harness = current()
    const inProgress = Promise.all(
      ['a', 'b'].map((text) => harness.log.append('inbox-events', record('k', text))),
    )
    const closed = harness.log.close()
    await expect(harness.log.append('inbox-events', record('k', 'c'))).rejects.toThrow(LogUnavailableError)
    await closed
    for (const topic of ['inbox-events', 'account-events'] as const) {
      await expect(harness.log.append(topic, record('k', 'd'))).rejects.toThrow(LogUnavailableError)
    }
    const [a] = await inProgress
    const log = await harness.reopen()
    const stored = await recordsOf(log, await rangeOf(log, 'inbox-events', a?.partition ?? -1))
    expect(stored.map(textOf)).toEqual(['a', 'b'])
  })
}
