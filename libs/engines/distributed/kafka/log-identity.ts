import { randomUUID } from 'node:crypto'
import type { Producer } from 'kafkajs'
import type { KafkaCluster } from './kafka-cluster.js'

export interface LogIdentity {
  logId: string
  /** Of the topics that have several. */
  partitions: number
}

/**
 * Who the log is: the first record of its topic, for ever. Where there is none each process that starts appends
 * one, and all then read which came first.
 */
export async function findIdentity(
  cluster: KafkaCluster,
  producer: Producer,
  topic: string,
  partitions: number,
): Promise<LogIdentity> {
  const present = await readFirst(cluster, topic)
  if (present !== null) return present
  const value = JSON.stringify({ log_id: randomUUID(), partitions })
  await producer.send({ topic, acks: -1, messages: [{ partition: 0, key: 'log', value }] })
  const written = await readFirst(cluster, topic)
  if (written === null) throw new Error(`the topic ${topic} does not give back the record that it took`)
  return written
}

async function readFirst(cluster: KafkaCluster, topic: string): Promise<LogIdentity | null> {
  const [{ first, end } = { first: 0, end: 0 }] = await cluster.offsets(topic)
  if (first === end) return null
  const { partitions } = await cluster.fetchOne(topic, { partition: 0, offset: first }, 1_000)
  const [record] = partitions.flatMap(({ records }) => records)
  if (record === undefined) throw new Error(`the topic ${topic} has records and gives none`)
  return parse(topic, Buffer.from(record.value).toString())
}

function parse(topic: string, text: string): LogIdentity {
  try {
    const { log_id: logId, partitions } = JSON.parse(text) as { log_id?: unknown; partitions?: unknown }
    if (typeof logId === 'string' && typeof partitions === 'number') return { logId, partitions }
  } catch {
    // It is told below what it should have been.
  }
  throw new Error(`the first record of the topic ${topic} is not a log's identity: is the topic another's?`)
}
