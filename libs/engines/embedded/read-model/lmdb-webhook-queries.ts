import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type {
  ListQuery,
  WebhookedInbox,
  WebhookQueries,
  WebhookScope,
} from '#libs/ports/read-model/queries.js'
import { scopesOf } from '#libs/ports/read-model/webhook-scopes.js'
import type { EnvironmentWebhookKey, InboxWebhookKey, Tables } from './tables.js'

const [FIRST, BEHIND] = ['whk_', 'whk_~'] as [WebhookId, WebhookId]
const WHOLE: ListQuery<WebhookId> = { order: 'asc', after: null, limit: Infinity }

export class LmdbWebhookQueries implements WebhookQueries {
  constructor(private readonly tables: Tables) {}

  webhook(id: WebhookId): Promise<Webhook | null> {
    return Promise.resolve(this.find(id))
  }

  listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    return Promise.resolve([...this.listed(scope, query)])
  }

  webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]> {
    const found: Webhook[] = []
    for (const scope of scopesOf(inboxes)) {
      for (const webhook of this.listed(scope, WHOLE)) if (webhook.state === 'active') found.push(webhook)
    }
    return Promise.resolve(found)
  }

  private *listed(scope: WebhookScope, { order, after, limit }: ListQuery<WebhookId>): Iterable<Webhook> {
    const [from, to] = order === 'asc' ? [after ?? FIRST, BEHIND] : [after ?? BEHIND, FIRST]
    const options = { limit, reverse: order === 'desc', exclusiveStart: true }
    for (const id of this.ids(scope, from, to, options)) {
      const webhook = this.find(id)
      if (webhook !== null) yield webhook
    }
  }

  private *ids(
    scope: WebhookScope,
    from: WebhookId,
    to: WebhookId,
    options: { limit: number; reverse: boolean; exclusiveStart: boolean },
  ): Iterable<WebhookId> {
    if ('inboxId' in scope) {
      const [start, end]: [InboxWebhookKey, InboxWebhookKey] = [
        [scope.inboxId, from],
        [scope.inboxId, to],
      ]
      for (const [, id] of this.tables.inboxWebhooks.getKeys({ start, end, ...options })) yield id
      return
    }
    const { accountId, environment } = scope
    const [start, end]: [EnvironmentWebhookKey, EnvironmentWebhookKey] = [
      [accountId, environment, from],
      [accountId, environment, to],
    ]
    for (const [, , id] of this.tables.environmentWebhooks.getKeys({ start, end, ...options })) yield id
  }

  private find(id: WebhookId): Webhook | null {
    const entry = this.tables.webhooks.get(id)
    return entry === undefined || entry === REMOVED ? null : entry
  }
}
