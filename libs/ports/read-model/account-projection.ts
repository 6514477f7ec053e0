import { evolve, type AccountSlice } from '#libs/domain/account/account.js'
import type { AccountEvent } from '#libs/domain/account/events.js'
import { REMOVED, type WebhookEntry } from '#libs/domain/webhook/webhook.js'
import type { AccountSliceKey } from './projection-store.js'
import type { Change } from './views.js'

/** The rows that an event is checked against. */
export function sliceConcerned(event: AccountEvent): AccountSliceKey {
  return {
    accountId: event.accountId,
    keyId: 'keyId' in event ? event.keyId : null,
    webhookId: 'webhookId' in event ? event.webhookId : null,
  }
}

/** What one event changes in the views of accounts, keys and webhooks. */
export function projectAccountEvent(before: AccountSlice, event: AccountEvent): Change[] {
  const after = evolve(before, event)
  const changes: Change[] = []
  if (after.account !== null && after.account !== before.account) {
    changes.push({ type: 'put-account', account: after.account })
  }
  if (after.key !== null && after.key !== before.key) changes.push({ type: 'put-key', key: after.key })
  if (after.webhook !== before.webhook) changes.push(...webhookChanges(before.webhook, after.webhook))
  return changes
}

function webhookChanges(before: WebhookEntry, after: WebhookEntry): Change[] {
  if (after !== null && after !== REMOVED) return [{ type: 'put-webhook', webhook: after }]
  return before === null || before === REMOVED ? [] : [{ type: 'remove-webhook', webhook: before }]
}
