import { randomUUID } from 'node:crypto'
import type { Admin } from 'kafkajs'
import { kafkaBrokers } from '#test/harness/servers.js'
import { until } from '#test/harness/until.js'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import { TOPICS } from '#libs/ports/event-log/topics.js'
import { makeKafka } from './kafka-client.js'
import { openKafkaEventLog } from './kafka-event-log.js'
import type { KafkaEventLogOptions } from './open-log.js'

export function logOptions(options: Partial<KafkaEventLogOptions> = {}): KafkaEventLogOptions {
  return {
    brokers: kafkaBrokers(),
    clientId: 'test',
    topicPrefix: `test-${randomUUID()}.`,
    partitions: PARTITIONS,
    replication: 1,
    sasl: null,
    tls: null,
    maxMessageBytes: 25 << 20,
    retentionMs: () => null,
    onError: () => undefined,
    ...options,
  }
}

/** Runs `work` with an admin client. */
export async function asAdmin<Result>(work: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = makeKafka(logOptions()).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Removes the topics of the log with this prefix. */
export async function removeTopics(topicPrefix: string): Promise<void> {
  await asAdmin(async (admin) => {
    const wanted = [...TOPICS, 'log'].map((topic) => topicPrefix + topic)
    const present = await admin.listTopics()
    await admin.deleteTopics({ topics: wanted.filter((topic) => present.includes(topic)) })
  })
}

/** A log of its own. `close` removes its topics, and fails if an error was reported in the background. */
export async function makeLog(changed: Partial<KafkaEventLogOptions> = {}) {
  const errors: string[] = []
  const onError = (error: unknown, during: string) => errors.push(`${during}: ${String(error)}`)
  const options = logOptions({ onError, ...changed })
  const harness = {
    options,
    log: await openKafkaEventLog(options),
    async reopen() {
      await harness.log.close()
      harness.log = await openKafkaEventLog(options)
      return harness.log
    },
    async close() {
      await harness.log.close()
      await removeTopics(options.topicPrefix)
      expect(errors).toEqual([])
    },
  }
  // A broker that has just started needs a while to serve its first group.
  const isServed = () => harness.log.committed('group', 'inbox-events').catch(() => null)
  await until('the group to be served', isServed)
  errors.length = 0
  return harness
}
