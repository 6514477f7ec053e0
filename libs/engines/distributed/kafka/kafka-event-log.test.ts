import { zstdCompressSync } from 'node:zlib'
import { randomBytes } from 'node:crypto'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import kafkajs from 'kafkajs'
import { describeOn } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { appendTo, Arrivals, consumerOf } from '#libs/ports/event-log/arrivals.contract.js'
import {
  keyIn,
  PARTITIONS,
  rangeOf,
  record,
  recordsOf,
  textOf,
} from '#libs/ports/event-log/event-log-harness.contract.js'
import { describeEventLog } from '#libs/ports/event-log/event-log.contract.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'
import { makeKafka } from './kafka-client.js'
import { openKafkaEventLog } from './kafka-event-log.js'
import { asAdmin, logOptions, makeLog, removeTopics } from './kafka-log-harness.contract.js'

describeOn('kafka')('Kafka', () => {
  describeEventLog('Kafka', makeLog)
})

describeOn('kafka')('Kafka event log: opening', () => {
  it('rejects another number of partitions, and says why', async () => {
    const harness = await makeLog()
    await expect(openKafkaEventLog({ ...harness.options, partitions: PARTITIONS + 1 })).rejects.toThrow(
      `has ${PARTITIONS} partitions, not ${PARTITIONS + 1}; another number would split an inbox's order`,
    )
    await harness.close()
  })

  it('rejects topics that have another number of partitions', async () => {
    const options = logOptions()
    const topic = `${options.topicPrefix}inbox-keys`
    await asAdmin((admin) =>
      admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: false }),
    )
    await expect(openKafkaEventLog(options)).rejects.toThrow(`${topic} has 1 partitions, not ${PARTITIONS}`)
    await removeTopics(options.topicPrefix)
  })

  it('opens the same log in all processes that start at once', async () => {
    const options = logOptions()
    const logs = await Promise.all([1, 2, 3].map(() => openKafkaEventLog(options)))
    const ids = await Promise.all(logs.map(async (log) => (await log.topology('inbox-events')).logId))
    expect(new Set(ids).size).toBe(1)
    await Promise.all(logs.map((log) => log.close()))
    await removeTopics(options.topicPrefix)
  })

  it('names the setting that requires more brokers than there are', async () => {
    await expect(openKafkaEventLog(logOptions({ replication: 3 }))).rejects.toThrow(
      /too few brokers for 3 copies .* set KAFKA_REPLICATION/,
    )
  })

  it('names the brokers that it can’t connect to', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const broker = `127.0.0.1:${(server.address() as AddressInfo).port}`
    server.close()
    await expect(openKafkaEventLog(logOptions({ brokers: [broker] }))).rejects.toThrow(
      new RegExp(`\\(${broker}\\) can't be opened: .*ECONNREFUSED`),
    )
  })
})

describeOn('kafka')('Kafka event log: topics', () => {
  it('are configured as required, and reconfigured if that changes', async () => {
    const harness = await makeLog({ retentionMs: (topic) => (topic === 'inbox-events' ? 1_000_000 : null) })
    const settingsOf = async (topic: TopicName) => {
      const name = harness.options.topicPrefix + topic
      const { resources } = await asAdmin((admin) =>
        admin.describeConfigs({
          includeSynonyms: false,
          resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name }],
        }),
      )
      const entries = resources.flatMap(({ configEntries }) => configEntries)
      return Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue]))
    }
    expect(await settingsOf('inbox-events')).toMatchObject({
      'cleanup.policy': 'delete',
      'retention.ms': '1000000',
      'max.message.bytes': `${26 << 20}`,
      'min.insync.replicas': '1',
      'unclean.leader.election.enable': 'false',
      'message.timestamp.type': 'LogAppendTime',
      'compression.type': 'uncompressed',
    })
    expect(await settingsOf('account-events')).toMatchObject({ 'retention.ms': '-1' })
    const keys = await settingsOf('inbox-keys')
    expect(keys).toMatchObject({ 'cleanup.policy': 'compact', 'segment.ms': '600000' })
    expect(keys).toMatchObject({ 'max.compaction.lag.ms': '600000', 'file.delete.delay.ms': '60000' })
    const name = `${harness.options.topicPrefix}inbox-events`
    await asAdmin((admin) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: kafkajs.ConfigResourceTypes.TOPIC,
            name,
            configEntries: [{ name: 'segment.ms', value: '3600000' }],
          },
        ],
      }),
    )
    // A broker returns the new value a moment after the controller has applied it.
    const isSeen = (setting: string, value: string) =>
      until(`${setting} to be ${value}`, async () => (await settingsOf('inbox-events'))[setting] === value)
    await isSeen('segment.ms', '3600000')
    await (await openKafkaEventLog({ ...harness.options, retentionMs: () => 2_000_000 })).close()
    await isSeen('retention.ms', '2000000')
    expect(await settingsOf('inbox-events')).toMatchObject({ 'segment.ms': '3600000' })
    await harness.close()
  })
})

describeOn('kafka')('Kafka event log: reading', () => {
  let harness: Awaited<ReturnType<typeof makeLog>>
  beforeEach(async () => {
    harness = await makeLog()
  })
  afterEach(() => harness.close())

  const kafka = () => makeKafka(harness.options)
  const topic = () => `${harness.options.topicPrefix}inbox-events`

  it('reads records as large as the mail limit among small ones', async () => {
    const { log } = harness
    const value = randomBytes(25 << 20)
    const arrivals = new Arrivals()
    const isWhole: boolean[] = []
    await Promise.all(
      [0, 1].flatMap((partition) => [
        log.append('inbox-events', { key: keyIn(partition), headers: {}, value }),
        log.append('inbox-events', record(keyIn(partition), 'small')),
        log.append('inbox-events', record(keyIn(partition + 2), 'small')),
      ]),
    )
    const consumer = await log.consume(
      consumerOf(arrivals, {
        handle({ partition, records }) {
          for (const each of records) {
            if (each.value.length > 1_000) isWhole.push(value.equals(each.value))
            arrivals.take({ partition, records: [{ ...each, value: Buffer.alloc(0) }] })
          }
          return Promise.resolve('done')
        },
      }),
    )
    await arrivals.until(() => arrivals.count >= 6)
    await consumer.stop()
    expect(isWhole).toEqual([true, true])
  })

  it('rejects a record that is too large at once, and appends the next one', async () => {
    const errors: unknown[] = []
    const own = await makeLog({ onError: (error) => errors.push(error) })
    const { log } = own
    const startedAt = Date.now()
    const tooLarge = { key: keyIn(0), headers: {}, value: Buffer.alloc(27 << 20) }
    await expect(log.append('inbox-events', tooLarge)).rejects.toMatchObject({ name: 'LogUnavailableError' })
    await appendTo(log, 0, 'a')
    expect(Date.now() - startedAt).toBeLessThan(8_000)
    expect(String(errors[0])).toContain('larger than the max message size')
    await own.close()
  })

  it('skips offsets without a record, also at the end', async () => {
    const { log } = harness
    const producer = kafka().producer({ transactionalId: topic(), maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    const transaction = await until('a coordinator', () => producer.transaction().catch(() => null))
    await transaction.send({ topic: topic(), messages: [{ partition: 1, key: 'k', value: 'a' }] })
    await transaction.commit()
    await producer.disconnect()
    const range = await until('the marker of the transaction’s end', async () => {
      const held = await rangeOf(log, 'inbox-events', 1)
      return held.end === 2 && held
    })
    expect((await recordsOf(log, range)).map(textOf)).toEqual(['a'])
    expect(await recordsOf(log, { ...range, first: 1 })).toEqual([])
    const arrivals = new Arrivals()
    const extents: number[][] = []
    const consumer = await log.consume(
      consumerOf(arrivals, {
        handle(batch) {
          if (batch.partition === 1) extents.push([batch.from, batch.next])
          arrivals.take(batch)
          return Promise.resolve('done')
        },
      }),
    )
    await arrivals.until(() => extents.at(-1)?.[1] === 2)
    await appendTo(log, 1, 'b')
    await arrivals.until(() => arrivals.count >= 2)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['a', 'b'])
    expect(extents.map(([from]) => from)).toEqual([0, ...extents.slice(0, -1).map(([, next]) => next)])
    expect(extents.at(-1)).toEqual([2, 3])
  })

  it('starts at the first record left if older ones were removed', async () => {
    const { log } = harness
    await appendTo(log, 1, 'a', 'b', 'c')
    const before = await rangeOf(log, 'inbox-events', 1)
    const partitions = [{ partition: 1, offset: '2' }]
    await asAdmin(async (admin) => {
      await admin.fetchTopicOffsets(topic())
      await admin.deleteTopicRecords({ topic: topic(), partitions })
    })
    expect(await rangeOf(log, 'inbox-events', 1)).toMatchObject({ first: 2, end: 3 })
    expect((await recordsOf(log, before)).map(textOf)).toEqual(['c'])
    const arrivals = new Arrivals()
    const startAt = () => Promise.resolve({ offset: 0 })
    const consumer = await log.consume(consumerOf(arrivals, { startAt }))
    await arrivals.until(() => arrivals.count >= 1)
    await consumer.stop()
    expect(arrivals.texts[1]).toEqual(['c'])
  })

  it('reads the records that compaction has left, even if the last of the range is removed', async () => {
    const { log } = harness
    const name = `${harness.options.topicPrefix}inbox-keys`
    const quick = { 'cleanup.policy': 'compact', 'segment.ms': '200', 'max.compaction.lag.ms': '200' }
    const configEntries = Object.entries(quick).map(([key, value]) => ({ name: key, value }))
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configEntries }]
    await asAdmin(async (admin) => {
      await admin.alterConfigs({ validateOnly: false, resources })
      // Until the broker has the setting, it stores the batch in a form that can be decoded.
      await until('the setting', async () => {
        const described = await admin.describeConfigs({ resources, includeSynonyms: false })
        const entries = described.resources.flatMap((resource) => resource.configEntries)
        return entries.some(
          (entry) => entry.configName === 'compression.type' && entry.configValue === 'producer',
        )
      })
    })
    const put = (key: string, text: string) => log.append('inbox-keys', { ...record(key, text), key })
    for (let n = 0; n < 10; n += 1) await put(keyIn(1), 'old')
    const range = { topic: 'inbox-keys', partition: 1, first: 0, end: 10 } as const
    expect(await recordsOf(log, range)).toHaveLength(10)
    await until(
      'the compaction',
      async () => {
        // Only an append ends a segment, and only ended segments are compacted.
        await put(keyIn(1), 'new')
        return (await recordsOf(log, range)).length === 0
      },
      60_000,
    )
    const { partitions } = await log.topology('inbox-keys')
    const all = await Promise.all(partitions.map((each) => recordsOf(log, each)))
    expect(all.flat().every((each) => textOf(each) === 'new')).toBe(true)
  }, 90_000)

  it('reads the other partitions if one has a batch that can’t be decoded', async () => {
    const { ZSTD } = kafkajs.CompressionTypes
    const codecs = kafkajs.CompressionCodecs
    const unsupported = codecs[ZSTD]
    const errors: string[] = []
    const own = await makeLog({ onError: (error) => errors.push(String(error)) })
    const name = `${own.options.topicPrefix}inbox-events`
    const configEntries = [{ name: 'compression.type', value: 'producer' }]
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configEntries }]
    await asAdmin((admin) => admin.alterConfigs({ validateOnly: false, resources }))
    const producer = makeKafka(own.options).producer()
    await producer.connect()
    codecs[ZSTD] = () => ({
      compress: ({ buffer }: { buffer: Buffer }) => Promise.resolve(zstdCompressSync(buffer)),
      decompress: () => Promise.reject(new kafkajs.KafkaJSError('not supported')),
    })
    try {
      const messages = [{ partition: 1, key: keyIn(1), value: 'a' }]
      await producer.send({ topic: name, compression: ZSTD, messages })
    } finally {
      codecs[ZSTD] = unsupported
      await producer.disconnect()
    }
    const arrivals = new Arrivals()
    const consumer = await own.log.consume(consumerOf(arrivals))
    for (const partition of [0, 2, 3]) await appendTo(own.log, partition, `in ${partition}`)
    await arrivals.until(() => arrivals.count >= 3)
    await until('the error to be reported', () =>
      errors.some((text) => text.includes(`${name}/1 can't be read from 0 on`)),
    )
    await appendTo(own.log, 2, 'more')
    await arrivals.until(() => arrivals.count >= 4)
    expect(arrivals.texts[1]).toEqual([])
    await consumer.stop()
    await own.close()
  })
})
