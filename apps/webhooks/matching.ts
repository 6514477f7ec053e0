import { hash } from 'node:crypto'
import { dayOf, quotaName } from '#libs/domain/account/quota.js'
import {
  bytesOf,
  idFromBytes,
  type DeliveryId,
  type InboxId,
  type ReplayId,
  type WebhookId,
} from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS, occurredAt, type InboxEvent } from '#libs/domain/inbox/events.js'
import type { Delivery } from '#libs/domain/webhook/delivery.js'
import type { EventNotification, Notification } from '#libs/domain/webhook/events.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { Recorded, Recorder } from '#libs/ports/event-log/cloud-event.js'
import type { Position } from '#libs/ports/event-log/event-log.js'
import type { MailQueries } from '#libs/ports/read-model/queries.js'
import type { WebhookedInbox } from '#libs/ports/read-model/account-views.js'
import { chunksOf } from '#libs/runtime/chunks.js'

/** An event that webhooks may subscribe to, and its inbox. */
export interface InboxNotification {
  position: Pick<Position, 'partition' | 'offset'>
  inbox: WebhookedInbox
  notification: EventNotification
}

/** The notifications in a partition's events, in their order. Some events have none. */
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

function notificationOf(event: InboxEvent): EventNotification | null {
  const { publicName: type, sent } = INBOX_EVENTS[event.type]
  if (sent === null) return null
  const ids = { inboxId: event.inboxId, messageId: 'messageId' in event ? event.messageId : null }
  return { type, ...ids, occurredAt: occurredAt(event) }
}

/**
 * Whether a webhook wants a notification. A webhook of one inbox wants that inbox's events; a webhook of an environment
 * wants those of every inbox without a password. Both want only events after their registration.
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

/** Those of the webhooks whose scope has the inbox of a notification. */
export function candidatesFor(
  notifications: readonly InboxNotification[],
  webhooks: readonly Webhook[],
): Webhook[] {
  const scopes = new Set(notifications.flatMap(({ inbox }) => [inbox.inboxId, environmentOf(inbox)]))
  return webhooks.filter((webhook) => scopes.has(scopeKeyOf(webhook)))
}

/** Concurrent appends: the log batches them into few requests. */
const MAX_CONCURRENT = 1_000

export interface DeliveryRequestsOptions {
  inboxes: Pick<MailQueries, 'inbox'>
  recorder: Pick<Recorder, 'record'>
  now: () => Date
}

/** Requests deliveries. A delivery that is requested again, after a crash, is made once. */
export class DeliveryRequests {
  constructor(private readonly options: DeliveryRequestsOptions) {}

  /** Requests each notification for each webhook that wants it. Resolves with the number of requests, once durable. */
  async requestAll(
    notifications: readonly InboxNotification[],
    webhooks: readonly Webhook[],
  ): Promise<number> {
    const hasEnvironmentWebhook = webhooks.some(({ inboxId }) => inboxId === null)
    const protectedIds = hasEnvironmentWebhook ? await this.protectedAmong(notifications) : new Set<InboxId>()
    const byScope = Map.groupBy(webhooks, scopeKeyOf)
    const wanted: { webhook: Webhook; notification: Notification }[] = []
    for (const inboxNotification of notifications) {
      const { inbox, notification } = inboxNotification
      const candidates = [...(byScope.get(inbox.inboxId) ?? []), ...(byScope.get(environmentOf(inbox)) ?? [])]
      for (const webhook of candidates) {
        if (wantsNotification(webhook, inboxNotification, protectedIds.has(inbox.inboxId)))
          wanted.push({ webhook, notification })
      }
    }
    await this.append(wanted)
    return wanted.length
  }

  /** Resolves once every request is durable. `replay`: the replay that they belong to; null for live events. */
  async append(
    wanted: readonly { webhook: Webhook; notification: Notification }[],
    replay: Pick<Replay, 'id' | 'selection'> | null = null,
  ): Promise<void> {
    const { recorder, now } = this.options
    const replayId = replay?.id ?? null
    // Messages from before the registration have not been delivered yet: theirs is the original delivery.
    const replayIdInName = replay?.selection.kind === 'existing-mail' ? null : replayId
    for (const some of chunksOf(wanted, MAX_CONCURRENT)) {
      await Promise.all(
        some.map(({ webhook, notification }) => {
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
    // An inbox that the views don't show might have a password.
    return new Set(ids.filter((_, index) => rows[index]?.inbox.isProtected !== false))
  }
}

function scopeKeyOf(webhook: Webhook): string {
  return webhook.inboxId ?? environmentOf(webhook)
}

function environmentOf({ accountId, environment }: Pick<Webhook, 'accountId' | 'environment'>): string {
  return `${accountId} ${environment}`
}

const ID_BYTES = 16
/** The timestamp of a UUIDv7, in milliseconds since 1970. */
const TIME_BYTES = 6

/**
 * The id of a delivery, computed from its webhook, event and replay, so that a delivery that is requested twice is made
 * once.
 */
export function deliveryIdOf(
  webhookId: WebhookId,
  notification: Notification,
  replayId: ReplayId | null,
): DeliveryId {
  const { type } = notification
  const named = JSON.stringify([webhookId, type, ...aboutOf(notification), replayId])
  return idFromBytes('dlv', hash('sha256', named, 'buffer').subarray(0, ID_BYTES))
}

function aboutOf(notification: Notification): unknown[] {
  const { inboxId, messageId, occurredAt } = notification
  // A domain can be verified, and can lapse, many times.
  if ('domainId' in notification) return [notification.domainId, occurredAt]
  // A key can get a new time, and has two notices for each, which may be on the log more than once.
  if ('keyId' in notification) return [notification.keyId, notification.expiresAt, notification.daysLeft]
  if ('quota' in notification) {
    const { quota, scope, limit, percent } = notification
    return [quotaName({ quota, scope }), limit, percent, dayOf(occurredAt)]
  }
  return [inboxId, messageId]
}

/** The `webhook-id` by which receivers drop duplicates: the id of the original delivery, in replays too. */
export function notificationIdOf(
  webhookId: WebhookId,
  deliveryId: DeliveryId,
  notification: Notification,
): DeliveryId {
  return notification.type === 'sample' ? deliveryId : deliveryIdOf(webhookId, notification, null)
}

/** Whether a delivery is the first of its event to its webhook, and does not repeat one in a replay. */
export function isOriginalDelivery({ id, webhookId, notification }: Delivery): boolean {
  return id === deliveryIdOf(webhookId, notification, null)
}

/**
 * The id of the replay that delivers to a new webhook the messages that its inboxes hold. Computed from the webhook's
 * id, so that a repeated request has the same id. It has the webhook's timestamp (RFC 9562, section 5.7), and so
 * sorts before all later replays.
 */
export function firstReplayIdOf(webhookId: WebhookId): ReplayId {
  const time = bytesOf(webhookId).subarray(0, TIME_BYTES)
  const rest = hash('sha256', `held ${webhookId}`, 'buffer').subarray(TIME_BYTES, ID_BYTES)
  return idFromBytes('rpl', Buffer.concat([time, rest]))
}
