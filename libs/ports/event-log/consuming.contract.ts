import { until } from '#test/harness/until.js'
import { PARTITIONS, record, type EventLogHarness } from './event-log-harness.contract.js'
import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'
import type { PartitionRange } from './event-log.js'
import { partitionOf } from './topics.js'

export function describeConsuming(made: () => EventLogHarness): void {
  it('brings all records, those of a partition in order, each once', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const sent = Array.from({ length: 200 }, (_, n) => ({ key: `key-${n % 11}`, text: `${n}` }))
    const append = (part: typeof sent) =>
      Promise.all(part.map(({ key, text }) => log.append('inbox-events', record(key, text))))
    await append(sent.slice(0, 100))
    const consumer = await log.consume(consumerOf(arrivals))
    await append(sent.slice(100))
    await arrivals.until(() => arrivals.count >= sent.length)
    await consumer.stop()
    for (const [partition, texts] of arrivals.texts.entries()) {
      const expected = sent.filter(({ key }) => partitionOf(key, PARTITIONS) === partition)
      expect(texts).toEqual(expected.map(({ text }) => text))
    }
  })

  it('asks for each partition’s start with its range, and begins there', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const asked: PartitionRange[] = []
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b', 'c')
    await appendTo(log, 2, 'd', 'e')
    const { partitions } = await log.topology('inbox-events')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        startAt: (range) => {
          asked.push(range)
          return Promise.resolve({ offset: range.partition === 1 ? second : range.first })
        },
      }),
    )
    await arrivals.until(() => arrivals.count >= 4)
    await consumer.stop()
    expect(asked.sort((one, other) => one.partition - other.partition)).toEqual(partitions)
    expect(arrivals.texts).toEqual([[], ['b', 'c'], ['d', 'e'], []])
  })

  it('asks for a partition’s start again where it is told to, and goes on from there', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b')
    let offset = 0
    const startAt = () => Promise.resolve({ offset })
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 2)
    offset = second
    consumer.restart(1)
    await arrivals.until(() => arrivals.count >= 3)
    consumer.restart(PARTITIONS)
    await appendTo(log, 1, 'c')
    await arrivals.until(() => arrivals.count >= 4)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['a', 'b', 'b', 'c'])
  })

  it('asks for a start again only behind the batch under way, and until it is told one', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const finish = Promise.withResolvers<undefined>()
    let asked = 0
    const consumer = await log.consume(
      consumerOf(arrivals, {
        startAt({ partition, first }) {
          if (partition !== 1 || (asked += 1) !== 2) return Promise.resolve({ offset: first })
          arrivals.changed()
          return Promise.reject(new Error('not yet'))
        },
        async handle(batch) {
          arrivals.take(batch)
          if (asked === 1 && batch.partition === 1) await finish.promise
          return 'done'
        },
        onError: () => undefined,
      }),
    )
    await arrivals.until(() => arrivals.count >= 1)
    consumer.restart(1)
    expect(asked).toBe(1)
    finish.resolve(undefined)
    await arrivals.until(() => arrivals.count >= 2)
    await consumer.stop()
    expect(asked).toBe(3)
    expect(arrivals.texts[1]).toEqual(['a', 'a'])
  })

  it('stops while it asks for a start, behind which there is nothing', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const asked = Promise.withResolvers<undefined>()
    const told = Promise.withResolvers<undefined>()
    let isAgain = false
    const startAt = async ({ first, end }: PartitionRange) => {
      if (!isAgain) return { offset: first }
      asked.resolve(undefined)
      await told.promise
      return { offset: end }
    }
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 1)
    isAgain = true
    consumer.restart(1)
    await asked.promise
    const stopped = consumer.stop()
    told.resolve(undefined)
    await stopped
    expect(arrivals.count).toBe(1)
  })

  it('asks for a start again while it is told one past the end, and begins at the first record if it is before that', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const told: number[] = []
    const startAt = ({ partition, first, end }: PartitionRange) => {
      if (partition !== 1) return Promise.resolve({ offset: end })
      const offset = told.length === 0 ? end + 1 : first - 1
      told.push(offset)
      return Promise.resolve({ offset })
    }
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['a'])
    expect(told).toHaveLength(2)
  })

  it('begins at a partition’s end where that is asked for', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a', 'b')
    const startAt = ({ end }: PartitionRange) => Promise.resolve({ offset: end })
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await appendTo(log, 1, 'c')
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['c'])
  })

  it('goes on where the group has committed, after a stop and after a restart', async () => {
    const harness = made()
    const next = async () => {
      const arrivals = new Arrivals()
      const consumer = await harness.log.consume(consumerOf(arrivals))
      await arrivals.until(() => arrivals.count >= 1)
      await consumer.stop()
      return arrivals.texts[1]
    }
    await appendTo(harness.log, 1, 'a')
    expect(await next()).toEqual(['a'])
    await appendTo(harness.log, 1, 'b')
    expect(await next()).toEqual(['b'])
    const log = await harness.reopen()
    await appendTo(log, 1, 'c')
    expect(await next()).toEqual(['c'])
  })

  it('keeps one group’s place apart from another’s', async () => {
    const { log } = made()
    await appendTo(log, 1, 'a', 'b')
    for (const group of ['one', 'other']) {
      const arrivals = new Arrivals()
      const consumer = await log.consume(consumerOf(arrivals, { group }))
      await arrivals.until(() => arrivals.count >= 2)
      await consumer.stop()
      expect(arrivals.texts[1]).toEqual(['a', 'b'])
    }
  })

  it('says how far it has come in each partition', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b')
    const finish = Promise.withResolvers<undefined>()
    const consumer = await log.consume(
      consumerOf(arrivals, {
        async handle(batch) {
          arrivals.take(batch)
          await finish.promise
          return 'done'
        },
      }),
    )
    const offsets = () =>
      consumer
        .positions()
        .sort((one, other) => one.partition - other.partition)
        .map(({ offset }) => offset)
    await arrivals.until(() => arrivals.count >= 1)
    const { partitions } = await log.topology('inbox-events')
    expect(offsets()).toEqual(partitions.map(({ first }) => first))
    finish.resolve(undefined)
    await until('the batches to be handled', () => offsets()[1] === second + 1)
    await consumer.stop()
    expect(consumer.positions()).toEqual([])
  })

  it('stops once the batch under way is handled, which it tells to hurry, and brings no other', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    let told: AbortSignal | null = null
    const finish = Promise.withResolvers<undefined>()
    await appendTo(log, 1, 'a')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        async handle(batch, signal) {
          told = signal
          arrivals.changed()
          await finish.promise
          arrivals.take(batch)
          return 'done'
        },
      }),
    )
    await arrivals.until(() => told !== null)
    await appendTo(log, 1, 'b')
    let isStopped = false
    const stopped = consumer.stop().then(() => (isStopped = true))
    expect(told).toMatchObject({ aborted: true })
    expect(isStopped).toBe(false)
    finish.resolve(undefined)
    await stopped
    expect(arrivals.texts[1]).toEqual(['a'])
    const next = new Arrivals()
    const successor = await log.consume(consumerOf(next))
    await next.until(() => next.count >= 1)
    await successor.stop()
    expect(next.texts[1]).toEqual(['b'])
  })
}
