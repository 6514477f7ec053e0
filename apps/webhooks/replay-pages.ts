import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { DeliveryQueries, InboxQueries } from '#libs/ports/read-model/queries.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { hasFailed, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { ReplayPlace, ReplaySelection, Notification } from '#libs/domain/webhook/webhook-events.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { isFirstTelling } from './matching.js'

/** What a replay is to tell in one step, and where it goes on; null: that was all. */
export interface ReplayPage {
  notifications: Notification[]
  next: ReplayPlace | null
}

export interface ReplayPagesOptions {
  deliveries: DeliveryQueries
  inboxes: Pick<InboxQueries, 'inbox' | 'listInboxes' | 'listMessages'>
  log: LogLayout
  now: () => Date
}

type IsMailWanted = (offset: number, receivedAt: Date) => boolean
type Range = Extract<ReplaySelection, { kind: 'range' }>

const ROWS_AT_ONCE = 200
/** One step ends soon, also where it finds nothing: on one machine nobody else has a turn meanwhile. */
const MAX_ROWS_OF_STEP = 2_000
const MAX_INBOXES_OF_STEP = 200
const WITHOUT_END = Number.MAX_SAFE_INTEGER
export const NOTHING_MORE: ReplayPage = { notifications: [], next: null }

/** Finds in the views what replays tell, a page at a time. What an inbox that has ended held is not told. */
export class ReplayPages {
  constructor(private readonly options: ReplayPagesOptions) {}

  async page(webhook: Webhook, replay: Replay, most: number): Promise<ReplayPage> {
    const { selection, next: place } = replay
    if (place === null) return NOTHING_MORE
    if (place.stage === 'held') return this.held(webhook, selection, place, most)
    if (selection.kind === 'deliveries') return this.given(webhook, selection.deliveryIds, place.offset, most)
    if (selection.kind === 'range') return this.told(webhook, replay, selection, place.offset, most)
    return NOTHING_MORE
  }

  private async given(
    { id: webhookId }: Webhook,
    ids: readonly Delivery['id'][],
    offset: number,
    most: number,
  ): Promise<ReplayPage> {
    const some = ids.slice(offset, offset + most)
    const rows = await Promise.all(
      some.map((deliveryId) => this.options.deliveries.delivery({ webhookId, deliveryId })),
    )
    const notifications = rows.flatMap((row) =>
      row === null || row.delivery.notification.type === 'sample' ? [] : [row.delivery.notification],
    )
    const end = offset + some.length
    return { notifications, next: end < ids.length ? { stage: 'given', offset: end } : null }
  }

  /** Of what was told: what failed, or what the inboxes can't say themselves; after that, the mail that they hold. */
  private async told(
    webhook: Webhook,
    replay: Replay,
    range: Range,
    from: number,
    most: number,
  ): Promise<ReplayPage> {
    const notifications: Notification[] = []
    const limit = ROWS_AT_ONCE
    const query = { webhookId: webhook.id, state: null, order: 'asc', to: WITHOUT_END, limit } as const
    let offset = from
    for (let looked = 0; looked < MAX_ROWS_OF_STEP; looked += ROWS_AT_ONCE) {
      const rows = await this.options.deliveries.listDeliveries({ ...query, from: offset })
      for (const { delivery, offset: at } of rows) {
        if (notifications.length === most) return { notifications, next: { stage: 'told', offset: at } }
        if (isToldAgain(delivery, webhook, replay, range)) notifications.push(delivery.notification)
        offset = at + 1
      }
      if (rows.length < ROWS_AT_ONCE) {
        return { notifications, next: range.onlyFailed ? null : { stage: 'held', inboxId: null, offset: 0 } }
      }
    }
    return { notifications, next: { stage: 'told', offset } }
  }

  private async held(
    webhook: Webhook,
    selection: ReplaySelection,
    place: Extract<ReplayPlace, { stage: 'held' }>,
    most: number,
  ): Promise<ReplayPage> {
    const notifications: Notification[] = []
    if (!webhook.events.includes('message.received')) return NOTHING_MORE
    let inboxesLeft = MAX_INBOXES_OF_STEP
    let rowsLeft = MAX_ROWS_OF_STEP
    for await (const inboxId of this.inboxesFrom(webhook, place.inboxId)) {
      const from = inboxId === place.inboxId ? place.offset : 0
      if (notifications.length === most || inboxesLeft === 0 || rowsLeft <= 0) {
        return { notifications, next: { stage: 'held', inboxId, offset: from } }
      }
      inboxesLeft -= 1
      const row = await this.options.inboxes.inbox(inboxId)
      if (row?.inbox.state !== 'active') continue
      if (webhook.inboxId === null && row.inbox.isProtected) continue
      const isWanted = mailWantedBy(selection, this.beginningOf(webhook, inboxId))
      const bounds = { most: most - notifications.length, mostRows: rowsLeft }
      const mail = await this.mailOf(inboxId, from, bounds, isWanted)
      notifications.push(...mail.notifications)
      rowsLeft -= mail.looked
      if (mail.goesOnAt !== null) {
        return { notifications, next: { stage: 'held', inboxId, offset: mail.goesOnAt } }
      }
    }
    return { notifications, next: null }
  }

  private async *inboxesFrom(webhook: Webhook, first: InboxId | null): AsyncGenerator<InboxId> {
    const { inboxes, now } = this.options
    if (webhook.inboxId !== null) {
      yield webhook.inboxId
      return
    }
    if (first !== null) yield first
    const { accountId, environment } = webhook
    const query = { accountId, environment, state: 'active', labels: [], order: 'asc' } as const
    let after = first
    for (;;) {
      const some = await inboxes.listInboxes({ ...query, after, limit: ROWS_AT_ONCE, now: now() })
      for (const { id } of some) yield id
      after = some.at(-1)?.id ?? null
      if (some.length < ROWS_AT_ONCE) return
    }
  }

  /** Where the inbox's partition ended when the webhook was registered. */
  private beginningOf({ positions }: Webhook, inboxId: InboxId): number {
    const partition = partitionOf(inboxId, this.options.log.partitionCount('inbox-events'))
    return positions.find((position) => position.partition === partition)?.offset ?? 0
  }

  private async mailOf(
    inboxId: InboxId,
    first: number,
    { most, mostRows }: { most: number; mostRows: number },
    isWanted: IsMailWanted,
  ): Promise<{ notifications: Notification[]; looked: number; goesOnAt: number | null }> {
    const notifications: Notification[] = []
    const query = { inboxId, order: 'asc', to: WITHOUT_END, limit: ROWS_AT_ONCE } as const
    let looked = 0
    let from = first
    while (looked < mostRows) {
      const rows = await this.options.inboxes.listMessages({ ...query, from })
      looked += rows.length
      for (const row of rows) {
        if (notifications.length === most) return { notifications, looked, goesOnAt: row.offset }
        from = row.offset + 1
        if (row.message.state !== 'present') continue
        const { id: messageId, receivedAt: occurredAt } = row.message
        if (!isWanted(row.offset, occurredAt)) continue
        notifications.push({ type: 'message.received', inboxId, messageId, occurredAt })
      }
      if (rows.length < ROWS_AT_ONCE) return { notifications, looked, goesOnAt: null }
    }
    return { notifications, looked, goesOnAt: from }
  }
}

function isToldAgain(delivery: Delivery, webhook: Webhook, replay: Replay, range: Range): boolean {
  const { notification, requestedAt } = delivery
  if (!isFirstTelling(delivery) || requestedAt >= replay.requestedAt) return false
  if (notification.type === 'sample' || !webhook.events.includes(notification.type)) return false
  if (!isIn(range, notification.occurredAt)) return false
  return range.onlyFailed ? hasFailed(delivery) : notification.type !== 'message.received'
}

/** What was there before the webhook lies before its beginning: all that is behind it is told as it happens. */
function mailWantedBy(selection: ReplaySelection, beginning: number): IsMailWanted {
  if (selection.kind === 'range') return (_, receivedAt) => isIn(selection, receivedAt)
  const since = selection.kind === 'held' ? selection.since : null
  return (offset, receivedAt) => offset < beginning && (since === null || receivedAt >= since)
}

function isIn({ from, to }: Range, moment: Date): boolean {
  return moment >= from && moment < to
}
