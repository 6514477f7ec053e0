import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { WebhookId } from '#libs/domain/ids/typeid.js'
import { REMOVED, type Webhook } from '#libs/domain/webhook/webhook.js'
import type {
  ListQuery,
  WebhookedInbox,
  WebhookQueries,
  WebhookScope,
} from '#libs/ports/read-model/queries.js'
import { scopesOf } from '#libs/ports/read-model/webhook-scopes.js'
import { pageOfIds, rowsOfIds } from './id-pages.js'
import { webhookListMember } from './key-lists.js'
import type { ViewKeys } from './keys.js'
import { reach, runsOf } from './reach.js'
import { decodeWebhook } from './rows.js'
import { ACTIVE_WEBHOOKS } from './scripts.js'

/** To one round trip, whose answer is as large as their webhooks are many. */
const SCOPES_AT_ONCE = 500

export class RedisWebhookQueries implements WebhookQueries {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
  ) {}

  async webhook(id: WebhookId): Promise<Webhook | null> {
    const row = await reach(() => this.client.hgetBuffer(this.keys.webhooks, id))
    return row === null ? null : (present([row])[0] ?? null)
  }

  async listWebhooks(scope: WebhookScope, query: ListQuery<WebhookId>): Promise<Webhook[]> {
    const { client, keys } = this
    const ids = await pageOfIds(client, keys.webhookList, webhookListMember(scope, ''), 'whk', query)
    return present(await rowsOfIds(client, keys.webhooks, ids))
  }

  async webhooksFor(inboxes: readonly WebhookedInbox[]): Promise<Webhook[]> {
    const { client, keys } = this
    const found: Webhook[] = []
    for (const run of runsOf(scopesOf(inboxes), SCOPES_AT_ONCE)) {
      const owners = run.map((scope) => webhookListMember(scope, ''))
      const rows = await reach(() =>
        ACTIVE_WEBHOOKS.runForBytes(client, [keys.activeWebhooks, keys.webhooks], owners),
      )
      found.push(...present(rows as Buffer[]))
    }
    return found
  }
}

function present(rows: readonly Buffer[]): Webhook[] {
  return rows.map(decodeWebhook).filter((row) => row !== REMOVED)
}
