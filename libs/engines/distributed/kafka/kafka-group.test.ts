import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import { PARTITIONS, record } from '#libs/ports/event-log/event-log-harness.contract.js'
import type { ConsumerSpec, RecordBatch } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { makeLog } from './kafka-log-harness.contract.js'

describeOn('kafka')('Kafka event log: consumers of one group', () => {
  let harness: Awaited<ReturnType<typeof makeLog>>
  beforeEach(async () => {
    harness = await makeLog()
  })
  afterEach(() => harness.close())

  async function append(from: number, to: number): Promise<void> {
    const numbers = Array.from({ length: to - from }, (_, n) => from + n)
    await Promise.all(numbers.map((n) => harness.log.append('inbox-events', record(`key-${n % 23}`, `${n}`))))
  }

  /** Expects each record at least once, and the first arrivals of a partition's records in the order of the log. */
  function expectComplete(arrivals: Arrivals, count: number): void {
    for (const [partition, texts] of arrivals.texts.entries()) {
      const expected = Array.from({ length: count }, (_, n) => n).filter(
        (n) => partitionOf(`key-${n % 23}`, PARTITIONS) === partition,
      )
      expect([...new Set(texts)].map(Number)).toEqual(expected)
    }
  }

  const distinct = (arrivals: Arrivals) => new Set(arrivals.texts.flat()).size

  it('share the partitions: each record is handled by one of them, in order', async () => {
    const all = new Arrivals()
    const shares = [new Set<number>(), new Set<number>()]
    const consumers = await Promise.all(
      shares.map((share) =>
        harness.log.consume(
          consumerOf(all, {
            startAt: ({ partition }) => {
              share.add(partition)
              all.changed()
              return Promise.resolve('committed')
            },
            handle(batch) {
              share.add(batch.partition)
              all.take(batch)
              return Promise.resolve('done')
            },
          }),
        ),
      ),
    )
    await all.until(() => shares.every((share) => share.size >= PARTITIONS / 2))
    await append(0, 200)
    await all.until(() => distinct(all) === 200)
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    expectComplete(all, 200)
  })

  it('lose no record if one joins and one leaves', async () => {
    const all = new Arrivals()
    // Commits fail while the group changes, so records are handled again.
    const spec = consumerOf(all, { onError: () => undefined })
    const consumers = [await harness.log.consume(spec)]
    await append(0, 100)
    const joined = harness.log.consume(spec)
    await append(100, 200)
    consumers.push(await joined)
    const shares = () => consumers.map((consumer) => consumer.positions().map(({ partition }) => partition))
    const areShared = () => shares().every(({ length }) => length === PARTITIONS / 2)
    await until('each to have its share', areShared, 60_000)
    expect(shares().flat().sort()).toEqual(Array.from({ length: PARTITIONS }, (_, partition) => partition))
    await append(200, 300)
    await consumers[0]?.stop()
    await append(300, 400)
    await all.until(() => distinct(all) === 400)
    await consumers[1]?.stop()
    expectComplete(all, 400)
  })

  it('get an abort signal for a partition that is assigned to another, which does not wait for them', async () => {
    await append(0, 100)
    const slow = new Arrivals()
    const signals = new Map<number, AbortSignal>()
    const release = Promise.withResolvers<undefined>()
    const stuck: Partial<ConsumerSpec> = {
      async handle(batch: RecordBatch, signal) {
        signals.set(batch.partition, signal)
        slow.changed()
        await release.promise
        return 'done'
      },
    }
    const first = await harness.log.consume(consumerOf(slow, stuck))
    await slow.until(() => signals.size === PARTITIONS)
    const quick = new Arrivals()
    const second = await harness.log.consume(consumerOf(quick))
    await quick.until(() => quick.texts.filter((texts) => texts.length > 0).length === PARTITIONS / 2)
    const aborted = [...signals].filter(([, signal]) => signal.aborted).map(([partition]) => partition)
    const moved = [...quick.texts.entries()]
      .filter(([, texts]) => texts.length > 0)
      .map(([partition]) => partition)
    expect(aborted.sort()).toEqual(moved)
    release.resolve(undefined)
    await first.stop()
    await second.stop()
  })

  it('are assigned no partition if there are more of them than partitions', async () => {
    const arrivals = new Arrivals()
    const consumers = []
    for (let n = 0; n < 2; n += 1) {
      consumers.push(await harness.log.consume(consumerOf(arrivals, { topic: 'account-events' })))
    }
    await harness.log.append('account-events', record('k', 'a'))
    await arrivals.until(() => arrivals.count >= 1)
    await Promise.all(consumers.map((consumer) => consumer.stop()))
    expect(arrivals.texts[0]).toEqual(['a'])
  })
})
