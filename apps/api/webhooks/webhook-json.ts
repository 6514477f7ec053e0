import type { Static } from 'typebox'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Webhook as WebhookSchema, WebhookWithSecret } from './webhook-schemas.js'

/** A webhook as the contract has it; `url` is its URL opened. */
export function webhookJson(webhook: Webhook, url: string): Static<typeof WebhookSchema> {
  return {
    id: webhook.id,
    url,
    inbox_id: webhook.inboxId,
    events: [...webhook.events],
    state: webhook.state,
    created_at: webhook.createdAt.toISOString(),
    disabled_reason: webhook.disabledReason,
  }
}

/** A webhook with the bytes that it signs with, which are shown this once. */
export interface NewWebhook {
  webhook: Webhook
  secret: Uint8Array
}

/** The secret as Standard Webhooks has it (section "Secret"): its prefix and base64. */
export function newWebhookJson(
  { webhook, secret }: NewWebhook,
  url: string,
): Static<typeof WebhookWithSecret> {
  return { ...webhookJson(webhook, url), secret: `whsec_${Buffer.from(secret).toString('base64')}` }
}
