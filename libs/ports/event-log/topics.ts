export type ViewedTopic = (typeof VIEWED_TOPICS)[number]
export type SourceTopic = (typeof SOURCE_TOPICS)[number]
export type LogTopic = SourceTopic | 'inbox-keys'
export type TopicName = LogTopic | `${LogTopic}.dead-letter`

/** Topics of events that views are made of. */
export const VIEWED_TOPICS = ['inbox-events', 'account-events', 'webhook-events'] as const

/** Topics of events, which consumers follow. */
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
 * Inbox keys lie in the partitions of their inboxes' events, what is told to a webhook in the partition of its id, and
 * what is done with an API key in that of the key's id. An account's events keep one order among all accounts, and dead letters have no order to keep.
 */
export function partitionCount(topic: TopicName, partitions: number): number {
  return topic === 'account-events' || isDeadLetter(topic) ? 1 : partitions
}
