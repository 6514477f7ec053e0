import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { WebhookedInbox, WebhookScope } from './queries.js'

/** Where to look for the webhooks of some inboxes: each inbox, and each environment, once. */
export function scopesOf(inboxes: readonly WebhookedInbox[]): WebhookScope[] {
  const scopes = new Map<string, WebhookScope>()
  for (const { inboxId, accountId, environment } of inboxes) {
    scopes.set(inboxId, { inboxId })
    scopes.set(`${accountId} ${environment}`, { accountId, environment })
  }
  return [...scopes.values()]
}

/** Where a webhook is found. */
export function scopeOf({ inboxId, accountId, environment }: Webhook): WebhookScope {
  return inboxId === null ? { accountId, environment } : { inboxId }
}
