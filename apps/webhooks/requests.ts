import type { Recorder } from '#libs/ports/event-log/codecs.js'
import type { InboxQueries } from '#libs/ports/read-model/queries.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Notification } from '#libs/domain/webhook/webhook-events.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { wantsNotification, requestOf, type InboxNotification } from './matching.js'

/** Appends at once: one request to the log takes as many along as it may. */
const AT_ONCE = 1_000

export interface RequestsOptions {
  inboxes: Pick<InboxQueries, 'inbox'>
  recorder: Pick<Recorder, 'record'>
  now: () => Date
}

/** Asks for deliveries. What is asked for again, since a process ended before it could say so, is delivered once. */
export class Requests {
  constructor(private readonly options: RequestsOptions) {}

  /** Resolves, once every request is durable, with how many there were. */
  async ask(notifications: readonly InboxNotification[], webhooks: readonly Webhook[]): Promise<number> {
    const needsPasswords = webhooks.some(({ inboxId }) => inboxId === null)
    const guarded = needsPasswords ? await this.protectedAmong(notifications) : new Set<InboxId>()
    const byScope = Map.groupBy(webhooks, scopeOf)
    const asked: { webhook: Webhook; notification: Notification }[] = []
    for (const inboxNotification of notifications) {
      const { inbox, notification } = inboxNotification
      const candidates = [...(byScope.get(inbox.inboxId) ?? []), ...(byScope.get(environmentOf(inbox)) ?? [])]
      for (const webhook of candidates) {
        if (wantsNotification(webhook, inboxNotification, guarded.has(inbox.inboxId)))
          asked.push({ webhook, notification })
      }
    }
    await this.append(asked)
    return asked.length
  }

  /** Resolves once every request is durable. `replay`: what asks for them; null for what is told as it happens. */
  async append(
    asked: readonly { webhook: Webhook; notification: Notification }[],
    replay: Pick<Replay, 'id' | 'selection'> | null = null,
  ): Promise<void> {
    const { recorder, now } = this.options
    for (let at = 0; at < asked.length; at += AT_ONCE) {
      await Promise.all(
        asked.slice(at, at + AT_ONCE).map(({ webhook, notification }) => {
          const request = requestOf(webhook, notification, { replay, now: now() })
          const { accountId, environment } = webhook
          return recorder.record(request, { accountId, environment, keyId: null })
        }),
      )
    }
  }

  private async protectedAmong(notifications: readonly InboxNotification[]): Promise<Set<InboxId>> {
    const ids = [...new Set(notifications.map(({ inbox }) => inbox.inboxId))]
    const rows = await Promise.all(ids.map((id) => this.options.inboxes.inbox(id)))
    // One that the views don't show could be protected: nothing of it is told.
    return new Set(ids.filter((_, index) => rows[index]?.inbox.isProtected !== false))
  }
}

function scopeOf(webhook: Webhook): string {
  return webhook.inboxId ?? environmentOf(webhook)
}

function environmentOf({ accountId, environment }: Pick<Webhook, 'accountId' | 'environment'>): string {
  return `${accountId} ${environment}`
}
