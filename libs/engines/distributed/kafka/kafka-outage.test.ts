import { describeOn, kafkaBrokers } from '#test/harness/servers.js'
import { startKafkaProxy } from '#test/harness/kafka-proxy.js'
import type { TcpProxy } from '#test/harness/tcp-proxy.js'
import { until } from '#test/harness/until.js'
import { appendTo, Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import { keyIn, record } from '#libs/ports/event-log/event-log-harness.contract.js'
import { makeLog } from './kafka-log-harness.contract.js'

const BOUND_MS = 20_000

describeOn('kafka')('Kafka event log: unavailable brokers', () => {
  it.concurrent.each([
    { how: 'that refuse connections', disable: (proxy: TcpProxy) => proxy.cut() },
    { how: 'that do not answer', disable: (proxy: TcpProxy) => proxy.silence() },
  ])(
    '$how: requests fail in bounded time, and succeed once the brokers are back',
    async ({ disable }) => {
      const proxy = await startKafkaProxy(kafkaBrokers()[0] ?? '')
      const errors: unknown[] = []
      const onError = (error: unknown) => errors.push(error)
      const harness = await makeLog({ brokers: [proxy.address], onError })
      const { log } = harness
      const arrivals = new Arrivals()
      const consumer = await log.consume(consumerOf(arrivals, { onError }))
      await appendTo(log, 1, 'before')
      await arrivals.until(() => arrivals.count >= 1)

      await disable(proxy)
      const startedAt = Date.now()
      const unavailable = { status: 'rejected', reason: { name: 'LogUnavailableError' } }
      const large = Buffer.alloc(3 << 20)
      const appends = [1, 2, 3, 1].map((partition) =>
        log.append('inbox-events', { ...record(keyIn(partition), 'x'), value: large }),
      )
      const offset = { topic: 'inbox-events', partition: 1, offset: 1, note: 'late' } as const
      const answers = await Promise.allSettled([
        ...appends,
        log.topology('inbox-events'),
        log.committed('group', 'inbox-events'),
        consumer.commit([offset]),
      ])
      expect(answers).toMatchObject(answers.map(() => unavailable))
      expect(Date.now() - startedAt).toBeLessThan(BOUND_MS)
      expect(errors.length).toBeGreaterThan(0)

      await proxy.restore()
      await until('an append', () => appendTo(log, 1, 'after').catch(() => null), 30_000)
      await until('the positions', () => log.topology('inbox-events').catch(() => null), 30_000)
      await until('the record', () => arrivals.texts[1]?.includes('after'), 30_000)
      expect(arrivals.texts[1]?.[0]).toBe('before')
      await consumer.stop()
      await harness.close()
      await proxy.cut()
    },
    90_000,
  )
})
