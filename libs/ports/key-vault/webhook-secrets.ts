import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type { SealedSecret, StoredUrl } from '#libs/domain/webhook/events.js'
import type { MasterKeys } from './master-key.js'

/**
 * Keeps what webhooks sign with, and where they post to, unreadable in the log and the views. Opening throws
 * MasterKeyMissingError if the master key that sealed it is no longer configured, and SealBrokenError if it was sealed
 * for another webhook or another use.
 */
export interface WebhookSecrets {
  seal(webhookId: WebhookId, secret: Uint8Array): SealedSecret
  open(webhookId: WebhookId, sealed: SealedSecret): Buffer
  sealUrl(webhookId: WebhookId, url: string): SealedSecret
  openUrl(webhookId: WebhookId, stored: StoredUrl): string
}

export function webhookSecrets(
  masterKeys: Pick<MasterKeys, 'sealSecret' | 'openSecret' | 'sealUrl' | 'openUrl'>,
): WebhookSecrets {
  return {
    seal: (webhookId, secret) => masterKeys.sealSecret(webhookId, secret),
    open: (webhookId, sealed) => masterKeys.openSecret(webhookId, sealed),
    sealUrl: (webhookId, url) => masterKeys.sealUrl(webhookId, url),
    openUrl: (webhookId, stored) =>
      typeof stored === 'string' ? stored : masterKeys.openUrl(webhookId, stored),
  }
}
