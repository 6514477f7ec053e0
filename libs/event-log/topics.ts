export type TopicName = SourceTopic | `${SourceTopic}.dead-letter`
export type SourceTopic = (typeof SOURCE_TOPICS)[number]

export const SOURCE_TOPICS = ['inbox-events', 'account-events'] as const

export const TOPICS: readonly TopicName[] = SOURCE_TOPICS.flatMap((topic) => [topic, deadLetterOf(topic)])

export function deadLetterOf(topic: TopicName): TopicName {
  return isDeadLetter(topic) ? topic : `${topic}.dead-letter`
}

function isDeadLetter(topic: TopicName): topic is `${SourceTopic}.dead-letter` {
  return topic.endsWith('.dead-letter')
}

/** An account's events keep one order among all accounts, and dead letters have no order to keep. */
export function partitionCount(topic: TopicName, partitions: number): number {
  return topic === 'inbox-events' ? partitions : 1
}
