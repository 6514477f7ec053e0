import { until } from '#test/harness/until.js'
import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'
import { PARTITIONS, record, textOf, type EventLogHarness } from './event-log-harness.contract.js'
import type { PartitionRange } from './event-log.js'
import { partitionOf } from './topics.js'

export function describeConsuming(current: () => EventLogHarness): void {
  it('delivers all records once, and those of a partition in order', async () => {
    const { log } = current()
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

  it('requests the start position of each partition with its range, and starts there', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const requested: PartitionRange[] = []
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b', 'c')
    await appendTo(log, 2, 'd', 'e')
    const { partitions } = await log.topology('inbox-events')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        startAt: (range) => {
          requested.push(range)
          return Promise.resolve({ offset: range.partition === 1 ? second : range.first })
        },
      }),
    )
    await arrivals.until(() => arrivals.count >= 4)
    await consumer.stop()
    expect(requested.sort((one, other) => one.partition - other.partition)).toEqual(partitions)
    expect(arrivals.texts).toEqual([[], ['b', 'c'], ['d', 'e'], []])
  })

  it('requests the start position again on restart, and continues from there', async () => {
    const { log } = current()
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

  it('requests the start position only after the batch in progress, and until it gets one', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const finish = Promise.withResolvers<undefined>()
    let requests = 0
    const consumer = await log.consume(
      consumerOf(arrivals, {
        startAt({ partition, first }) {
          if (partition !== 1 || (requests += 1) !== 2) return Promise.resolve({ offset: first })
          arrivals.changed()
          return Promise.reject(new Error('not yet'))
        },
        async handle(batch) {
          arrivals.take(batch)
          if (requests === 1 && batch.partition === 1) await finish.promise
          return 'done'
        },
        onError: () => undefined,
      }),
    )
    await arrivals.until(() => arrivals.count >= 1)
    consumer.restart(1)
    expect(requests).toBe(1)
    finish.resolve(undefined)
    await arrivals.until(() => arrivals.count >= 2)
    await consumer.stop()
    expect(requests).toBe(3)
    expect(arrivals.texts[1]).toEqual(['a', 'a'])
  })

  it('stops while it waits for a start position at the end', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const requested = Promise.withResolvers<undefined>()
    const answer = Promise.withResolvers<undefined>()
    let isAgain = false
    const startAt = async ({ first, end }: PartitionRange) => {
      if (!isAgain) return { offset: first }
      requested.resolve(undefined)
      await answer.promise
      return { offset: end }
    }
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 1)
    isAgain = true
    consumer.restart(1)
    await requested.promise
    const stopped = consumer.stop()
    answer.resolve(undefined)
    await stopped
    expect(arrivals.count).toBe(1)
  })

  it('requests the start position again if it is past the end, and starts at the first record if it is before that', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a')
    const answers: number[] = []
    const startAt = ({ partition, first, end }: PartitionRange) => {
      if (partition !== 1) return Promise.resolve({ offset: end })
      const offset = answers.length === 0 ? end + 1 : first - 1
      answers.push(offset)
      return Promise.resolve({ offset })
    }
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['a'])
    expect(answers).toHaveLength(2)
  })

  it('can start at the end of a partition', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    await appendTo(log, 1, 'a', 'b')
    const startAt = ({ end }: PartitionRange) => Promise.resolve({ offset: end })
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await appendTo(log, 1, 'c')
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['c'])
  })

  it('continues at the committed offset after a stop, and after the log is reopened', async () => {
    const harness = current()
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

  it('keeps the offsets of different groups apart', async () => {
    const { log } = current()
    await appendTo(log, 1, 'a', 'b')
    for (const group of ['one', 'other']) {
      const arrivals = new Arrivals()
      const consumer = await log.consume(consumerOf(arrivals, { group }))
      await arrivals.until(() => arrivals.count >= 2)
      await consumer.stop()
      expect(arrivals.texts[1]).toEqual(['a', 'b'])
    }
  })

  it('reports its position in each partition', async () => {
    const { log } = current()
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

  it('delivers records together that follow soon on a batch, if the consumer lingers', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const batches: string[][] = []
    const consumer = await log.consume(
      consumerOf(arrivals, {
        lingerMs: 6_000,
        handle(batch) {
          batches.push(batch.records.map(textOf))
          arrivals.take(batch)
          return Promise.resolve('done')
        },
      }),
    )
    await appendTo(log, 1, 'a')
    await arrivals.until(() => arrivals.count >= 1)
    for (const text of ['b', 'c', 'd']) await appendTo(log, 1, text)
    await arrivals.until(() => arrivals.count >= 4)
    await consumer.stop()
    expect(batches).toEqual([['a'], ['b', 'c', 'd']])
  })

  it('stops at once if it lingers, and leaves the records to the next consumer', async () => {
    const { log } = current()
    const [arrivals, next] = [new Arrivals(), new Arrivals()]
    const consumer = await log.consume(consumerOf(arrivals, { lingerMs: 100_000 }))
    await appendTo(log, 1, 'a')
    await arrivals.until(() => arrivals.count >= 1)
    await appendTo(log, 1, 'b')
    await consumer.stop()
    const successor = await log.consume(consumerOf(next))
    await next.until(() => next.count >= 1)
    await successor.stop()
    expect([arrivals.texts[1], next.texts[1]]).toEqual([['a'], ['b']])
  })

  it('stops after the batch in progress, whose signal it aborts, and delivers no other', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    let received: AbortSignal | null = null
    const finish = Promise.withResolvers<undefined>()
    await appendTo(log, 1, 'a')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        async handle(batch, signal) {
          received = signal
          arrivals.changed()
          await finish.promise
          arrivals.take(batch)
          return 'done'
        },
      }),
    )
    await arrivals.until(() => received !== null)
    await appendTo(log, 1, 'b')
    let isStopped = false
    const stopped = consumer.stop().then(() => (isStopped = true))
    expect(received).toMatchObject({ aborted: true })
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
