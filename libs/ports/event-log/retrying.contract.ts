import { textOf, type EventLogHarness } from './event-log-harness.contract.js'
import { appendTo, Arrivals, consumerOf } from './arrivals.contract.js'

export function describeRetrying(made: () => EventLogHarness): void {
  it('brings the same records again where the handler rejects, and tells of it', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const failure = new Error('the views are out of reach')
    const told: unknown[] = []
    const offered: string[] = []
    await appendTo(log, 1, 'a', 'b')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        handle(batch) {
          offered.push(batch.records.map(textOf).join(''))
          if (told.length < 2) return Promise.reject(failure)
          arrivals.take(batch)
          return Promise.resolve('done')
        },
        onError: (error, { topic, partition }) => told.push({ error, topic, partition }),
      }),
    )
    await arrivals.until(() => arrivals.count >= 2)
    await consumer.stop()
    const expected = { error: failure, topic: 'inbox-events', partition: 1 }
    expect(told).toEqual([expected, expected])
    expect(offered.slice(0, 3).map((texts) => texts[0])).toEqual(['a', 'a', 'a'])
    expect(arrivals.texts[1]).toEqual(['a', 'b'])
  })

  it('commits nothing of what was not handled', async () => {
    const { log } = made()
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
  ])('goes back where the handler seeks to record $to', async ({ to, expected }) => {
    const { log } = made()
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

  it('goes on with other partitions while the handler of one waits, which has one batch at a time', async () => {
    const { log } = made()
    const arrivals = new Arrivals()
    const blocked = Promise.withResolvers<undefined>()
    let underWay = 0
    await appendTo(log, 1, 'blocked')
    const consumer = await log.consume(
      consumerOf(arrivals, {
        async handle(batch) {
          if (batch.partition === 1) {
            underWay += 1
            arrivals.changed()
            await blocked.promise
          }
          arrivals.take(batch)
          return 'done'
        },
      }),
    )
    await arrivals.until(() => underWay === 1)
    await appendTo(log, 1, 'next')
    await Promise.all([0, 2, 3].map((partition) => appendTo(log, partition, 'free')))
    await arrivals.until(() => arrivals.count >= 3)
    expect(underWay).toBe(1)
    expect(arrivals.texts).toEqual([['free'], [], ['free'], ['free']])
    blocked.resolve(undefined)
    await arrivals.until(() => arrivals.count >= 5)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['blocked', 'next'])
  })
}
