import { until } from '#test/harness/until.js'
import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'
import { PARTITIONS, type EventLogHarness } from './event-log-harness.contract.js'
import { MAX_NOTE_BYTES, type Consumer, type EventLog, type CommittedOffset } from './event-log.js'

const GROUP = 'group'
const TOPIC = 'inbox-events'
const notAssigned = { name: 'NotAssignedError' }

function place(partition: number, offset: number, note: string): CommittedOffset {
  return { topic: TOPIC, partition, offset, note }
}

/** A consumer that says itself where it begins, at the first records. */
function consumeByItself(log: EventLog): Promise<Consumer> {
  return log.consume(
    consumerOf(new Arrivals(), { startAt: ({ first }) => Promise.resolve({ offset: first }) }),
  )
}

export function describeCommitting(made: () => EventLogHarness): void {
  it('keeps places and their notes, also past a restart of the log', async () => {
    const harness = made()
    const places = [place(1, 2, 'from 2 to 5'), place(2, 0, '{"grüße":"ä"}'), place(3, 7, '')]
    const consumer = await consumeByItself(harness.log)
    expect(await harness.log.committed(GROUP, TOPIC)).toEqual([])
    await consumer.commit(places)
    expect(await harness.log.committed(GROUP, TOPIC)).toEqual(places)
    await consumer.commit([])
    await consumer.commit([place(1, 5, '')])
    await consumer.stop()
    const log = await harness.reopen()
    expect(await log.committed(GROUP, TOPIC)).toEqual([place(1, 5, ''), ...places.slice(1)])
    expect(await log.committed('other', TOPIC)).toEqual([])
    expect(await log.committed(GROUP, 'webhook-events')).toEqual([])
  })

  it.each([
    { what: 'a partition that is not the consumer’s', foreign: place(PARTITIONS, 1, '') },
    { what: 'another topic', foreign: { ...place(0, 1, ''), topic: 'webhook-events' } as const },
  ])('takes none of the places where one is of $what', async ({ foreign }) => {
    const { log } = made()
    const consumer = await consumeByItself(log)
    await consumer.commit([place(1, 1, 'before')])
    await expect(consumer.commit([place(1, 2, 'after'), foreign])).rejects.toMatchObject(notAssigned)
    expect(await log.committed(GROUP, TOPIC)).toEqual([place(1, 1, 'before')])
    await consumer.stop()
  })

  it('takes notes of 3,500 bytes, all partitions at once, and none of the places where one is longer', async () => {
    const { log } = made()
    const consumer = await consumeByItself(log)
    const longest = Array.from({ length: PARTITIONS }, (_, n) => place(n, n, 'ä'.repeat(MAX_NOTE_BYTES / 2)))
    await consumer.commit(longest)
    const longer = place(1, 9, `${'ä'.repeat(MAX_NOTE_BYTES / 2)}.`)
    await expect(consumer.commit([place(0, 9, ''), longer])).rejects.toThrow(RangeError)
    expect(await log.committed(GROUP, TOPIC)).toEqual(longest)
    await consumer.stop()
  })

  it('begins at a place whatever its note says, and leaves none where the log commits by itself', async () => {
    const { log } = made()
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b')
    const noting = await consumeByItself(log)
    await noting.commit([place(1, second, 'noted')])
    await noting.stop()
    const arrivals = new Arrivals()
    const consumer = await log.consume(consumerOf(arrivals))
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['b'])
    expect(await log.committed(GROUP, TOPIC)).toEqual([place(1, second + 1, '')])
  })

  it('takes places while a batch is being handled, by its handler and by others', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const finish = Promise.withResolvers<undefined>()
    const begun = Promise.withResolvers<Consumer>()
    await appendTo(log, 1, 'a')
    begun.resolve(
      await log.consume(
        consumerOf(arrivals, {
          startAt: ({ first }) => Promise.resolve({ offset: first }),
          async handle(batch) {
            await (await begun.promise).commit([place(1, 1, 'of the handler')])
            arrivals.take(batch)
            await finish.promise
            return 'done'
          },
        }),
      ),
    )
    await arrivals.until(() => arrivals.count >= 1)
    const consumer = await begun.promise
    await consumer.commit([place(0, 0, 'of another')])
    expect(await log.committed(GROUP, TOPIC)).toEqual([
      place(0, 0, 'of another'),
      place(1, 1, 'of the handler'),
    ])
    finish.resolve(undefined)
    await until('the batch to be handled', () =>
      consumer.positions().some(({ partition, offset }) => partition === 1 && offset === 1),
    )
    await consumer.stop()
    // What has its own start has only what it commits by itself.
    expect((await log.committed(GROUP, TOPIC))[1]).toEqual(place(1, 1, 'of the handler'))
  })

  it('takes last places once no batch is being handled, and none when it has stopped', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const order: string[] = []
    const finish = Promise.withResolvers<undefined>()
    await appendTo(log, 1, 'a')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        startAt: ({ first }) => Promise.resolve({ offset: first }),
        async handle(batch) {
          arrivals.take(batch)
          await finish.promise
          order.push('handled')
          return 'done'
        },
      }),
    )
    await arrivals.until(() => arrivals.count >= 1)
    const stopped = consumer.stop(async () => {
      order.push('last')
      await consumer.commit([place(1, 1, 'last')])
    })
    const repeated = consumer.stop(() => Promise.reject(new Error('of a second call')))
    finish.resolve(undefined)
    await Promise.all([stopped, repeated])
    expect(order).toEqual(['handled', 'last'])
    await expect(consumer.commit([place(1, 0, 'late')])).rejects.toMatchObject(notAssigned)
    expect(await log.committed(GROUP, TOPIC)).toEqual([place(1, 1, 'last')])
  })

  it('stops though its last work fails, and says so to who gave it', async () => {
    const { log } = made()
    const consumer = await consumeByItself(log)
    const failure = new Error('ClickHouse is away')
    const stopped = consumer.stop(() => Promise.reject(failure))
    const repeated = consumer.stop()
    await expect(stopped).rejects.toBe(failure)
    await repeated
    expect(consumer.positions()).toEqual([])
    await expect(consumer.commit([place(1, 0, '')])).rejects.toMatchObject(notAssigned)
  })
}
