import type { Settings } from '#libs/runtime/config/settings.js'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import type { WebhookSecrets } from '#libs/ports/key-vault/master-key.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import type { FreeDisk } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import type { KeyUse } from '#libs/ports/key-use/key-use.js'
import type { IdempotencyStore } from '#libs/ports/idempotency/idempotency-store.js'
import type { RateLimits } from '#libs/ports/rate-limit/rate-limits.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'
import type { Signals } from '#libs/ports/signals/signals.js'
import type { UsageStore } from '#libs/ports/usage/usage-store.js'
import type { TopicName } from '#libs/ports/event-log/topics.js'

/** Every port, with the adapters of one engine behind them. */
export interface Engine extends Omit<ReadModel, 'store' | 'queries'> {
  log: EventLog
  vault: KeyVault
  projections: ReadModel['store']
  inboxes: ReadModel['queries']
  secrets: WebhookSecrets
  keyUse: KeyUse
  signals: Signals
  limits: RateLimits
  idempotency: IdempotencyStore
  /** Null if the embedded engine has none: it is told not to count, or chDB does not come for the system. */
  usage: Omit<UsageStore, 'close'> | null
  /** Of the disk that all is stored on; null if that is other processes' disks. */
  disk: Pick<FreeDisk, 'availableBytes'> | null
  /** Lets go of every resource; what was acknowledged is durable. */
  close(): Promise<void>
}

export interface EngineOptions {
  settings: Settings
  /** What this process does: names its connections. */
  role: string
  now: () => Date
  /** Told of faults in the background, each of which is tried again. */
  onError: (error: unknown, during: string) => void
}

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
