import { until } from '#test/harness/until.js'
import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'
import { PARTITIONS, type EventLogHarness } from './event-log-harness.contract.js'
import { MAX_NOTE_BYTES, type CommittedOffset, type Consumer, type EventLog } from './event-log.js'

const GROUP = 'group'
const TOPIC = 'inbox-events'
const notAssigned = { name: 'NotAssignedError' }

function offsetAt(partition: number, offset: number, note: string): CommittedOffset {
  return { topic: TOPIC, partition, offset, note }
}

/** A consumer that starts at the first records, not at the committed offsets. */
function consumeFromFirst(log: EventLog): Promise<Consumer> {
  return log.consume(
    consumerOf(new Arrivals(), { startAt: ({ first }) => Promise.resolve({ offset: first }) }),
  )
}

export function describeCommitting(current: () => EventLogHarness): void {
  it('keeps offsets and their notes, also when the log is reopened', async () => {
    const harness = current()
    const offsets = [offsetAt(1, 2, 'from 2 to 5'), offsetAt(2, 0, '{"grüße":"ä"}'), offsetAt(3, 7, '')]
    const consumer = await consumeFromFirst(harness.log)
    expect(await harness.log.committed(GROUP, TOPIC)).toEqual([])
    await consumer.commit(offsets)
    expect(await harness.log.committed(GROUP, TOPIC)).toEqual(offsets)
    await consumer.commit([])
    await consumer.commit([offsetAt(1, 5, '')])
    await consumer.stop()
    const log = await harness.reopen()
    expect(await log.committed(GROUP, TOPIC)).toEqual([offsetAt(1, 5, ''), ...offsets.slice(1)])
    expect(await log.committed('other', TOPIC)).toEqual([])
    expect(await log.committed(GROUP, 'webhook-events')).toEqual([])
  })

  it.each([
    { what: 'a partition that is not the consumer’s', foreign: offsetAt(PARTITIONS, 1, '') },
    { what: 'another topic', foreign: { ...offsetAt(0, 1, ''), topic: 'webhook-events' } as const },
  ])('commits no offsets if one is of $what', async ({ foreign }) => {
    const { log } = current()
    const consumer = await consumeFromFirst(log)
    await consumer.commit([offsetAt(1, 1, 'before')])
    await expect(consumer.commit([offsetAt(1, 2, 'after'), foreign])).rejects.toMatchObject(notAssigned)
    expect(await log.committed(GROUP, TOPIC)).toEqual([offsetAt(1, 1, 'before')])
    await consumer.stop()
  })

  it('accepts notes of 3,500 bytes for all partitions at once, and commits no offsets if one is longer', async () => {
    const { log } = current()
    const consumer = await consumeFromFirst(log)
    const longest = Array.from({ length: PARTITIONS }, (_, n) =>
      offsetAt(n, n, 'ä'.repeat(MAX_NOTE_BYTES / 2)),
    )
    await consumer.commit(longest)
    const longer = offsetAt(1, 9, `${'ä'.repeat(MAX_NOTE_BYTES / 2)}.`)
    await expect(consumer.commit([offsetAt(0, 9, ''), longer])).rejects.toThrow(RangeError)
    expect(await log.committed(GROUP, TOPIC)).toEqual(longest)
    await consumer.stop()
  })

  it('starts at an offset with a note, and commits empty notes by itself', async () => {
    const { log } = current()
    const [, second = NaN] = await appendTo(log, 1, 'a', 'b')
    const noting = await consumeFromFirst(log)
    await noting.commit([offsetAt(1, second, 'noted')])
    await noting.stop()
    const arrivals = new Arrivals()
    const consumer = await log.consume(consumerOf(arrivals))
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['b'])
    expect(await log.committed(GROUP, TOPIC)).toEqual([offsetAt(1, second + 1, '')])
  })

  it('commits handled batches by itself: soon after them, although no more come, and when it stops', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const consumer = await log.consume(consumerOf(arrivals))
    const committedTo = async () =>
      (await log.committed(GROUP, TOPIC)).find(({ partition }) => partition === 1)?.offset
    for (const [index, text] of ['a', 'b', 'c'].entries()) {
      const [offset = NaN] = await appendTo(log, 1, text)
      await arrivals.until(() => arrivals.count > index)
      await until(`${text} to be committed`, async () => (await committedTo()) === offset + 1)
    }
    const [last = NaN] = await appendTo(log, 1, 'd')
    await arrivals.until(() => arrivals.count === 4)
    await consumer.stop()
    expect(await committedTo()).toBe(last + 1)
  })

  it('commits offsets while a batch is being handled, by its handler and by others', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const finish = Promise.withResolvers<undefined>()
    const begun = Promise.withResolvers<Consumer>()
    await appendTo(log, 1, 'a')
    begun.resolve(
      await log.consume(
        consumerOf(arrivals, {
          startAt: ({ first }) => Promise.resolve({ offset: first }),
          async handle(batch) {
            await (await begun.promise).commit([offsetAt(1, 1, 'of the handler')])
            arrivals.take(batch)
            await finish.promise
            return 'done'
          },
        }),
      ),
    )
    await arrivals.until(() => arrivals.count >= 1)
    const consumer = await begun.promise
    await consumer.commit([offsetAt(0, 0, 'of another')])
    expect(await log.committed(GROUP, TOPIC)).toEqual([
      offsetAt(0, 0, 'of another'),
      offsetAt(1, 1, 'of the handler'),
    ])
    finish.resolve(undefined)
    await until('the batch to be handled', () =>
      consumer.positions().some(({ partition, offset }) => partition === 1 && offset === 1),
    )
    await consumer.stop()
    // A consumer with its own start position has only the offsets that it commits itself.
    expect((await log.committed(GROUP, TOPIC))[1]).toEqual(offsetAt(1, 1, 'of the handler'))
  })

  it('commits nothing after it has stopped', async () => {
    const { log } = current()
    const consumer = await consumeFromFirst(log)
    await consumer.commit([offsetAt(1, 1, 'last')])
    await Promise.all([consumer.stop(), consumer.stop()])
    expect(consumer.positions()).toEqual([])
    await expect(consumer.commit([offsetAt(1, 0, 'late')])).rejects.toMatchObject(notAssigned)
    expect(await log.committed(GROUP, TOPIC)).toEqual([offsetAt(1, 1, 'last')])
  })
}
