import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'
import { textOf, type EventLogHarness } from './event-log-harness.contract.js'

export function describeRetrying(current: () => EventLogHarness): void {
  it('delivers the same records again if the handler rejects, and reports the error', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const failure = new Error('the views are out of reach')
    const errors: unknown[] = []
    const delivered: string[] = []
    await appendTo(log, 1, 'a', 'b')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        handle(batch) {
          delivered.push(batch.records.map(textOf).join(''))
          if (errors.length < 2) return Promise.reject(failure)
          arrivals.take(batch)
          return Promise.resolve('done')
        },
        onError: (error, { topic, partition }) => errors.push({ error, topic, partition }),
      }),
    )
    await arrivals.until(() => arrivals.count >= 2)
    await consumer.stop()
    const expected = { error: failure, topic: 'inbox-events', partition: 1 }
    expect(errors).toEqual([expected, expected])
    expect(delivered.slice(0, 3).map((texts) => texts[0])).toEqual(['a', 'a', 'a'])
    expect(arrivals.texts[1]).toEqual(['a', 'b'])
  })

  it('does not commit batches that were not handled', async () => {
    const { log } = current()
    const [failing, working] = [new Arrivals(), new Arrivals()]
    let failures = 0
    await appendTo(log, 1, 'a')
    const first = await log.consume(
      consumerOf(failing, {
        handle: () => Promise.reject(new Error('always')),
        onError: () => {
          failures += 1
          failing.changed()
        },
      }),
    )
    await failing.until(() => failures > 0)
    await first.stop()
    const second = await log.consume(consumerOf(working))
    await working.until(() => working.count >= 1)
    await second.stop()
    expect(working.texts[1]).toEqual(['a'])
  })

  it.each([
    { to: 0, expected: ['a', 'b', 'c', 'a', 'b', 'c'] },
    { to: 1, expected: ['a', 'b', 'c', 'b', 'c'] },
  ])('seeks back to record $to if the handler requests it', async ({ to, expected }) => {
    const { log } = current()
    const arrivals = new Arrivals()
    const offsets = await appendTo(log, 1, 'a', 'b', 'c')
    let isSought = false
    const consumer = await log.consume(
      consumerOf(arrivals, {
        handle(batch) {
          arrivals.take(batch)
          if (isSought || batch.records.at(-1)?.offset !== offsets[2]) return Promise.resolve('done')
          isSought = true
          return Promise.resolve({ seekTo: offsets[to] ?? NaN })
        },
      }),
    )
    await arrivals.until(() => arrivals.count >= expected.length)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(expected)
  })

  it('handles other partitions while one is blocked, and one batch of a partition at a time', async () => {
    const { log } = current()
    const arrivals = new Arrivals()
    const blocked = Promise.withResolvers<undefined>()
    let inProgress = 0
    await appendTo(log, 1, 'blocked')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        async handle(batch) {
          if (batch.partition === 1) {
            inProgress += 1
            arrivals.changed()
            await blocked.promise
          }
          arrivals.take(batch)
          return 'done'
        },
      }),
    )
    await arrivals.until(() => inProgress === 1)
    await appendTo(log, 1, 'next')
    await Promise.all([0, 2, 3].map((partition) => appendTo(log, partition, 'free')))
    await arrivals.until(() => arrivals.count >= 3)
    expect(inProgress).toBe(1)
    expect(arrivals.texts).toEqual([['free'], [], ['free'], ['free']])
    blocked.resolve(undefined)
    await arrivals.until(() => arrivals.count >= 5)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['blocked', 'next'])
  })
}
