import type { Settings } from '#libs/runtime/config/settings.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { DerivedKeys, WebhookSecrets } from '#libs/ports/key-vault/master-key.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import type { FreeDisk } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { IdempotencyStore } from '#libs/ports/idempotency/idempotency-store.js'
import type { RateLimits } from '#libs/ports/rate-limit/rate-limits.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

export interface Engine extends Omit<ReadModel, 'store' | 'queries'> {
  log: EventLog
  vault: KeyVault
  projections: ReadModel['store']
  inboxes: ReadModel['queries']
  secrets: WebhookSecrets & DerivedKeys
  keyUse: KeyUse
  signals: Signals
  limits: RateLimits
  idempotency: IdempotencyStore
  /** Null if usage is not counted: it is turned off, or chDB does not support the system or can't read its files. */
  usage: Omit<UsageStore, 'close'> | null
  /** The disk that stores everything; null if servers store it. */
  disk: Pick<FreeDisk, 'availableBytes' | 'state'> | null
  /** Releases every resource. Everything acknowledged is durable. */
  close(): Promise<void>
}

export interface EngineOptions {
  settings: Settings
  /** The role of this process, used in the names of its connections. */
  role: string
  now: () => Date
  /** Called with each failure in the background, what was being done, and what happens now: it is retried by default. */
  onError: (error: unknown, during: string, outcome?: string) => void
}

const DAY_MS = 86_400_000
/** How long deliveries are kept, on the log and in the views. */
export const WEBHOOK_RETENTION_MS = 30 * DAY_MS

/**
 * How long a topic's records are kept; null if they are never removed. Mail, usage and dead letters are kept for 90 days,
 * three times the longest life of an inbox, and deliveries for 30 days, ten times as long as they are attempted. Accounts
 * and audit logs are kept for ever. Keys are compacted: the last record of each inbox is kept.
 */
export function retentionMs(topic: TopicName): number | null {
  if (topic === 'account-events' || topic === 'audit-leaves' || topic === 'inbox-keys') return null
  return topic === 'webhook-events' ? WEBHOOK_RETENTION_MS : 90 * DAY_MS
}
