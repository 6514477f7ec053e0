import type { TopicName } from '#libs/event-log/topics.js'

const DAY_MS = 86_400_000

/**
 * How long a topic's records are kept; null for ever. Mail and dead letters stay for 90 days, three times the
 * longest life of an inbox; accounts for ever; keys as long as they are the last of their inbox.
 */
export function retentionMs(topic: TopicName): number | null {
  return topic === 'account-events' || topic === 'inbox-keys' ? null : 90 * DAY_MS
}
