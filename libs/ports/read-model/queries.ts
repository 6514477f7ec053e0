import { accountViews, webhookViews } from './account-views.js'
import { auditViews } from './audit-views.js'
import { deliveryViews, replayViews } from './delivery-views.js'
import { inboxViews } from './inbox-views.js'
import type { ViewStore } from './view-store.js'

/*
 * The queries of the views, for every engine. Each is written once, on the store. A row that is found is valid, although
 * possibly not the latest; what is not found may be missing because the views are catching up (`consistent-views.ts`).
 */

export type MailQueries = ReturnType<typeof inboxViews>
export type AccountQueries = ReturnType<typeof accountViews>
export type WebhookQueries = ReturnType<typeof webhookViews>
export type DeliveryQueries = ReturnType<typeof deliveryViews>
export type ReplayQueries = ReturnType<typeof replayViews>
export type AuditQueries = ReturnType<typeof auditViews>

export type ReadModel = ReturnType<typeof readModel>

export function readModel(store: ViewStore) {
  return {
    store,
    queries: inboxViews(store),
    accounts: accountViews(store),
    webhooks: webhookViews(store),
    deliveries: deliveryViews(store),
    replays: replayViews(store),
    audit: auditViews(store),
  }
}
