import type { InboxId } from '#libs/domain/ids/typeid.js'
import { hasFailed, type Delivery } from '#libs/domain/webhook/delivery.js'
import type { ReplayPosition, ReplaySelection, Notification } from '#libs/domain/webhook/events.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import type { LogLayout } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { activeInboxes } from '#libs/ports/read-model/inbox-lists.js'
import type { DeliveryQueries, MailQueries } from '#libs/ports/read-model/queries.js'
import { isOriginalDelivery } from './matching.js'

/** The notifications of one step of a replay, and the position of the next step; null after the last one. */
export interface ReplayPage {
  notifications: Notification[]
  next: ReplayPosition | null
}

export interface ReplayPagesOptions {
  deliveries: DeliveryQueries
  inboxes: Pick<MailQueries, 'inbox' | 'listInboxes' | 'listMessages'>
  log: LogLayout
  now: () => Date
}

type IsMailWanted = (offset: number, receivedAt: Date) => boolean
type Range = Extract<ReplaySelection, { kind: 'range' }>

const PAGE_ROWS = 200
/** One step is short even if it finds nothing, because on the embedded engine it blocks the event loop. */
const MAX_ROWS_OF_STEP = 2_000
const MAX_INBOXES_OF_STEP = 200
const NO_END = Number.MAX_SAFE_INTEGER
export const EMPTY_PAGE: ReplayPage = { notifications: [], next: null }

/** Finds the notifications of a replay in the views, a page at a time. Messages of an ended inbox are not replayed. */
export class ReplayPages {
  constructor(private readonly options: ReplayPagesOptions) {}

  async page(webhook: Webhook, replay: Replay, max: number): Promise<ReplayPage> {
    const { selection, next: position } = replay
    if (position === null) return EMPTY_PAGE
    if (position.stage === 'existing-mail') return this.existingMail(webhook, selection, position, max)
    if (selection.kind === 'deliveries')
      return this.selectedDeliveries(webhook, selection.deliveryIds, position.offset, max)
    if (selection.kind === 'range')
      return this.pastDeliveries(webhook, replay, selection, position.offset, max)
    return EMPTY_PAGE
  }

  private async selectedDeliveries(
    { id: webhookId }: Webhook,
    ids: readonly Delivery['id'][],
    offset: number,
    max: number,
  ): Promise<ReplayPage> {
    const pageIds = ids.slice(offset, offset + max)
    const rows = await Promise.all(
      pageIds.map((deliveryId) => this.options.deliveries.delivery({ webhookId, deliveryId })),
    )
    const notifications = rows.flatMap((row) =>
      row === null || row.delivery.notification.type === 'sample' ? [] : [row.delivery.notification],
    )
    const end = offset + pageIds.length
    return { notifications, next: end < ids.length ? { stage: 'selected-deliveries', offset: end } : null }
  }

  /**
   * The webhook's earlier deliveries in a range: only those that failed, or all but `message.received`. Those messages
   * are read from the inboxes afterwards (`existingMail`).
   */
  private async pastDeliveries(
    webhook: Webhook,
    replay: Replay,
    range: Range,
    from: number,
    max: number,
  ): Promise<ReplayPage> {
    const notifications: Notification[] = []
    const limit = PAGE_ROWS
    const query = { webhookId: webhook.id, state: null, order: 'asc', to: NO_END, limit } as const
    let offset = from
    for (let rowsRead = 0; rowsRead < MAX_ROWS_OF_STEP; rowsRead += PAGE_ROWS) {
      const rows = await this.options.deliveries.listDeliveries({ ...query, from: offset })
      for (const { delivery, offset: at } of rows) {
        if (notifications.length === max)
          return { notifications, next: { stage: 'past-deliveries', offset: at } }
        if (isReplayed(delivery, webhook, replay, range)) notifications.push(delivery.notification)
        offset = at + 1
      }
      if (rows.length < PAGE_ROWS) {
        return {
          notifications,
          next: range.onlyFailed ? null : { stage: 'existing-mail', inboxId: null, offset: 0 },
        }
      }
    }
    return { notifications, next: { stage: 'past-deliveries', offset } }
  }

  private async existingMail(
    webhook: Webhook,
    selection: ReplaySelection,
    position: Extract<ReplayPosition, { stage: 'existing-mail' }>,
    max: number,
  ): Promise<ReplayPage> {
    const notifications: Notification[] = []
    if (!webhook.events.includes('message.received')) return EMPTY_PAGE
    let inboxesLeft = MAX_INBOXES_OF_STEP
    let rowsLeft = MAX_ROWS_OF_STEP
    for await (const inboxId of this.inboxesFrom(webhook, position.inboxId)) {
      const from = inboxId === position.inboxId ? position.offset : 0
      if (notifications.length === max || inboxesLeft === 0 || rowsLeft <= 0) {
        return { notifications, next: { stage: 'existing-mail', inboxId, offset: from } }
      }
      inboxesLeft -= 1
      const row = await this.options.inboxes.inbox(inboxId)
      if (row?.inbox.state !== 'active') continue
      if (webhook.inboxId === null && row.inbox.isProtected) continue
      const isWanted = mailFilterOf(selection, this.registeredAt(webhook, inboxId))
      const limits = { max: max - notifications.length, maxRows: rowsLeft }
      const mail = await this.mailOf(inboxId, from, limits, isWanted)
      notifications.push(...mail.notifications)
      rowsLeft -= mail.rowsRead
      if (mail.nextOffset !== null) {
        return { notifications, next: { stage: 'existing-mail', inboxId, offset: mail.nextOffset } }
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
    const query = { accountId, environment, labels: [], after: first, pageSize: PAGE_ROWS, now }
    for await (const page of activeInboxes((list) => inboxes.listInboxes(list), query)) {
      for (const { id } of page) yield id
    }
  }

  /** The end offset of the inbox's partition when the webhook was registered. */
  private registeredAt({ positions }: Webhook, inboxId: InboxId): number {
    const partition = partitionOf(inboxId, this.options.log.partitionCount('inbox-events'))
    return positions.find((position) => position.partition === partition)?.offset ?? 0
  }

  private async mailOf(
    inboxId: InboxId,
    first: number,
    { max, maxRows }: { max: number; maxRows: number },
    isWanted: IsMailWanted,
  ): Promise<{ notifications: Notification[]; rowsRead: number; nextOffset: number | null }> {
    const notifications: Notification[] = []
    const query = { inboxId, order: 'asc', to: NO_END, limit: PAGE_ROWS } as const
    let rowsRead = 0
    let from = first
    while (rowsRead < maxRows) {
      const rows = await this.options.inboxes.listMessages({ ...query, from })
      rowsRead += rows.length
      for (const row of rows) {
        if (notifications.length === max) return { notifications, rowsRead, nextOffset: row.offset }
        from = row.offset + 1
        if (row.message.state !== 'present') continue
        const { id: messageId, receivedAt: occurredAt } = row.message
        if (!isWanted(row.offset, occurredAt)) continue
        notifications.push({ type: 'message.received', inboxId, messageId, occurredAt })
      }
      if (rows.length < PAGE_ROWS) return { notifications, rowsRead, nextOffset: null }
    }
    return { notifications, rowsRead, nextOffset: from }
  }
}

function isReplayed(delivery: Delivery, webhook: Webhook, replay: Replay, range: Range): boolean {
  const { notification, requestedAt } = delivery
  if (!isOriginalDelivery(delivery) || requestedAt >= replay.requestedAt) return false
  if (notification.type === 'sample' || !webhook.events.includes(notification.type)) return false
  if (!isIn(range, notification.occurredAt)) return false
  return range.onlyFailed ? hasFailed(delivery) : notification.type !== 'message.received'
}

/** A replay of existing mail ends at the webhook's registration: later messages were delivered as they arrived. */
function mailFilterOf(selection: ReplaySelection, registeredAt: number): IsMailWanted {
  if (selection.kind === 'range') return (_, receivedAt) => isIn(selection, receivedAt)
  const since = selection.kind === 'existing-mail' ? selection.since : null
  return (offset, receivedAt) => offset < registeredAt && (since === null || receivedAt >= since)
}

function isIn({ from, to }: Range, moment: Date): boolean {
  return moment >= from && moment < to
}
