import type { WebhookId } from '#libs/typeid/typeid.js'
import type { SealedSecret } from '#libs/webhook/events.js'
import type { MasterKeys } from './master-key.js'

/** Keeps what webhooks sign with unreadable to whoever reads the log or the views. */
export interface WebhookSecrets {
  seal(webhookId: WebhookId, secret: Uint8Array): SealedSecret
  /**
   * Throws MasterKeyMissingError where the master key that sealed it is configured no longer, SealBrokenError where it
   * was sealed for another webhook.
   */
  open(webhookId: WebhookId, sealed: SealedSecret): Buffer
}

export function webhookSecrets(masterKeys: Pick<MasterKeys, 'sealSecret' | 'openSecret'>): WebhookSecrets {
  return {
    seal: (webhookId, secret) => masterKeys.sealSecret(webhookId, secret),
    open: (webhookId, sealed) => masterKeys.openSecret(webhookId, sealed),
  }
}
