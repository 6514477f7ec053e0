export type ViewedTopic = (typeof VIEWED_TOPICS)[number]
export type SourceTopic = (typeof SOURCE_TOPICS)[number]
export type LogTopic = SourceTopic | 'inbox-keys'
export type TopicName = LogTopic | `${LogTopic}.dead-letter`

/** Topics whose views requests, mail and deliveries depend on. */
export const SERVED_TOPICS = ['inbox-events', 'account-events', 'webhook-events'] as const

/** Topics that the views are computed from. */
export const VIEWED_TOPICS = [...SERVED_TOPICS, 'audit-leaves'] as const

/** Topics that consumer groups read. */
export const SOURCE_TOPICS = [...VIEWED_TOPICS, 'usage-events'] as const

export const LOG_TOPICS: readonly LogTopic[] = [...SOURCE_TOPICS, 'inbox-keys']

export const TOPICS: readonly TopicName[] = LOG_TOPICS.flatMap((topic) => [topic, deadLetterOf(topic)])

export function deadLetterOf(topic: TopicName): TopicName {
  return isDeadLetter(topic) ? topic : `${topic}.dead-letter`
}

export function isDeadLetter(topic: TopicName): topic is `${LogTopic}.dead-letter` {
  return topic.endsWith('.dead-letter')
}

/**
 * The key of an inbox is in the same partition as the inbox's events. Account events are in one partition, so that all
 * of them are in order. Dead letters need no order, so one partition is enough.
 */
export function partitionCount(topic: TopicName, partitions: number): number {
  return topic === 'account-events' || isDeadLetter(topic) ? 1 : partitions
}

/**
 * The partition of a key, according to Kafka's default partitioner: murmur2 of the key's UTF-8 bytes. Clients in every
 * language agree on it (org.apache.kafka.common.utils.Utils.murmur2).
 */
export function partitionOf(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
}

const SEED = 0x9747b28c
const M = 0x5bd1e995
const R = 24

/** Returns a signed 32-bit integer. */
export function murmur2(bytes: Buffer): number {
  let hash = SEED ^ bytes.length
  const tail = bytes.length & ~3
  for (let at = 0; at < tail; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), M)
    word ^= word >>> R
    hash = Math.imul(hash, M) ^ Math.imul(word, M)
  }
  const left = bytes.length - tail
  if (left > 0) hash = Math.imul(hash ^ bytes.readUIntLE(tail, left), M)
  hash = Math.imul(hash ^ (hash >>> 13), M)
  return hash ^ (hash >>> 15)
}
