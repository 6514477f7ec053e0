import type { TopicName } from '#libs/ports/event-log/topics.js'

const DAY_MS = 86_400_000

/**
 * How long a topic's records are kept; null for ever. Mail, use and dead letters stay for 90 days, three times the
 * longest life of an inbox; accounts for ever; keys as long as they are the last of their inbox; what became of
 * deliveries for 30 days, ten times as long as they are tried.
 */
export function retentionMs(topic: TopicName): number | null {
  if (topic === 'account-events' || topic === 'inbox-keys') return null
  return (topic === 'webhook-events' ? 30 : 90) * DAY_MS
}
