import { hash } from 'node:crypto'
import type { Recorded, Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import type { InboxQueries, WebhookedInbox } from '#libs/ports/read-model/queries.js'
import type { Notification } from '#libs/domain/webhook/webhook-events.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import {
  bytesOf,
  idFromBytes,
  type DeliveryId,
  type InboxId,
  type ReplayId,
  type WebhookId,
} from '#libs/domain/ids/typeid.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'

/** An event that webhooks may be told of, and of which inbox. */
export interface InboxNotification {
  position: Pick<Position, 'partition' | 'offset'>
  inbox: WebhookedInbox
  notification: Exclude<Notification, { type: 'sample' }>
}

/** In the order of a partition's events, without those that no webhook is told of. */
export function notificationsIn(
  events: readonly { offset: number; recorded: Recorded<InboxEvent> }[],
  partition: number,
): InboxNotification[] {
  return events.flatMap(({ offset, recorded: { accountId, environment, event } }) => {
    const notification = notificationOf(event)
    if (notification === null) return []
    const inbox = { inboxId: event.inboxId, accountId, environment }
    return [{ position: { partition, offset }, inbox, notification }]
  })
}

function notificationOf(event: InboxEvent): InboxNotification['notification'] | null {
  switch (event.type) {
    case 'InboxCreated':
      return null
    case 'MessageReceived': {
      const { inboxId, messageId, receivedAt: occurredAt } = event
      return { type: 'message.received', inboxId, messageId, occurredAt }
    }
    case 'MessageDeleted': {
      const { inboxId, messageId, deletedAt: occurredAt } = event
      return { type: 'message.deleted', inboxId, messageId, occurredAt }
    }
    case 'InboxExpired':
      return { type: 'inbox.expired', inboxId: event.inboxId, messageId: null, occurredAt: event.expiredAt }
    case 'InboxDeleted':
      return { type: 'inbox.deleted', inboxId: event.inboxId, messageId: null, occurredAt: event.deletedAt }
  }
}

/**
 * Whether a webhook is to be told: of its own inbox, or of any inbox of its environment that has no password, and of
 * what came behind its registration.
 */
export function wantsNotification(
  webhook: Webhook,
  { position, inbox, notification }: InboxNotification,
  isProtected: boolean,
): boolean {
  if (webhook.state !== 'active' || !webhook.events.includes(notification.type)) return false
  if (webhook.accountId !== inbox.accountId || webhook.environment !== inbox.environment) return false
  if (webhook.inboxId === null ? isProtected : webhook.inboxId !== inbox.inboxId) return false
  const since = webhook.positions.find(({ partition }) => partition === position.partition)
  return since !== undefined && position.offset >= since.offset
}

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
    const replayId = replay?.id ?? null
    // What was there before the webhook is told for the first time.
    const replayIdInName = replay?.selection.kind === 'held' ? null : replayId
    for (let at = 0; at < asked.length; at += AT_ONCE) {
      await Promise.all(
        asked.slice(at, at + AT_ONCE).map(({ webhook, notification }) => {
          const { id: webhookId, accountId, environment } = webhook
          const deliveryId = deliveryIdOf(webhookId, notification, replayIdInName)
          const ids = { webhookId, deliveryId, accountId, environment, replayId }
          return recorder.record(
            { type: 'DeliveryRequested', ...ids, notification, requestedAt: now() },
            { accountId, environment, keyId: null },
          )
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

const ID_BYTES = 16
/** Of a UUIDv7: milliseconds since 1970. */
const TIME_BYTES = 6

/**
 * The same for the same webhook, event and replay, whoever asks for it and how often: what is asked for twice is
 * delivered once.
 */
export function deliveryIdOf(
  webhookId: WebhookId,
  { type, inboxId, messageId }: Notification,
  replayId: ReplayId | null,
): DeliveryId {
  const named = JSON.stringify([webhookId, type, inboxId, messageId, replayId])
  return idFromBytes('dlv', hash('sha256', named, 'buffer').subarray(0, ID_BYTES))
}

/** The `webhook-id` that receivers drop repeats by: that of the delivery which told it as it happened. */
export function notificationIdOf(
  webhookId: WebhookId,
  deliveryId: DeliveryId,
  told: Notification,
): DeliveryId {
  return told.type === 'sample' ? deliveryId : deliveryIdOf(webhookId, told, null)
}

/** Whether a delivery is not of a replay, but the one which told it as it happened, or of what was there before. */
export function isFirstTelling({ id, webhookId, notification }: Delivery): boolean {
  return id === deliveryIdOf(webhookId, notification, null)
}

/**
 * Of the replay that tells a new webhook what its inboxes hold: the same however often it is asked for. It has the
 * webhook's time (RFC 9562, section 5.7), and so comes before all others of it.
 */
export function firstReplayIdOf(webhookId: WebhookId): ReplayId {
  const time = bytesOf(webhookId).subarray(0, TIME_BYTES)
  const rest = hash('sha256', `held ${webhookId}`, 'buffer').subarray(TIME_BYTES, ID_BYTES)
  return idFromBytes('rpl', Buffer.concat([time, rest]))
}
