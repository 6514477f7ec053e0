import { randomUUID } from 'node:crypto'
import { describeOn, kafkaBrokers } from '#test/harness/servers.js'
import { PARTITIONS } from '../event-log-harness.contract.js'
import { describeEventLog } from '../event-log.contract.js'
import { TOPICS } from '../topics.js'
import { makeKafka } from './kafka-client.js'
import { KafkaEventLog, type KafkaEventLogOptions } from './kafka-event-log.js'

async function makeLog(options: Partial<KafkaEventLogOptions> = {}) {
  const topicPrefix = `test-${randomUUID()}.`
  const all: KafkaEventLogOptions = {
    brokers: kafkaBrokers(),
    clientId: 'test',
    topicPrefix,
    partitions: PARTITIONS,
    replication: 1,
    sasl: null,
    tls: null,
    maxMessageBytes: 25 << 20,
    retentionMs: () => null,
    onError: (error, during) => console.error(during, error),
    ...options,
  }
  const open = (changed: Partial<KafkaEventLogOptions> = {}) => KafkaEventLog.open({ ...all, ...changed })
  const harness = {
    log: await open(),
    open,
    topicPrefix,
    async reopen() {
      await harness.log.close()
      harness.log = await open()
      return harness.log
    },
    async close() {
      await harness.log.close()
      const admin = makeKafka(all).admin()
      await admin.connect()
      await admin.deleteTopics({ topics: [...TOPICS, 'log'].map((topic) => topicPrefix + topic) })
      await admin.disconnect()
    },
  }
  return harness
}

describeOn('kafka')('Kafka', () => {
  describeEventLog('Kafka', makeLog)
})
