import { LRUCache } from 'lru-cache'
import { dayOf, type MailQuota, type QuotaScope } from '#libs/domain/account/quota.js'
import { brand, type AccountId, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { needsSource } from '#libs/mail/stored-mail.js'
import { decodedBefore } from '#libs/ports/event-log/batch-decoding.js'
import { inboxEventCodec } from '#libs/ports/event-log/cloud-event.js'
import type { LogReader } from '#libs/ports/event-log/event-log.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import type { SealedParts } from '#libs/ports/key-vault/sealing.js'
import type { ActivityEntry } from './activity.js'
import { EXPIRY_LEASE_MS, listed, listInboxes, type InboxListQuery } from './inbox-lists.js'
import { pageOfRows, rowOf, type OffsetQuery } from './lists.js'
import * as tables from './tables.js'
import { sumOf, type Entry, type ViewStore } from './view-store.js'
import type {
  EnvironmentEvent,
  EnvironmentMessage,
  HistoryEntry,
  InboxRow,
  MailOwner,
  MessageRow,
} from './views.js'

export interface MessageKey {
  inboxId: InboxId
  messageId: MessageId
}

export interface MessageRangeQuery extends OffsetQuery {
  inboxId: InboxId
}

/** Offsets of one partition of inbox-events. */
export interface EnvironmentQuery extends OffsetQuery, MailOwner {
  partition: number
}

/** Offsets of one partition of inbox-events. */
export interface InboxActivityQuery extends OffsetQuery {
  accountId: AccountId
  partition: number
}

/** A label of an environment. `now` decides which of its inboxes have ended too long ago to count. */
export interface LabelQuery extends MailOwner {
  name: string
  value: string
  now: Date
}

/** The unprotected inboxes of a label that are active or have ended within a day, and the messages that they have received. */
export interface LabelTotals {
  inboxes: number
  received: number
}

/** Only the inboxes that have received from `from` up to, not including, `to` messages. */
export interface LabelCountQuery extends LabelQuery {
  from: number
  to: number
  limit: number
}

type Part = 'body' | 'raw'

const MAX_SOURCES_BYTES = 8 << 20
const SOURCE_OVERHEAD_BYTES = 200

/** Attempts to lease inboxes if other processes lease the same ones first. */
const MAX_ATTEMPTS = 10

/** The one event in the history of an inbox that an entry of another list leads to. */
const eventOf =
  (partition: number) =>
  ({ sort, key }: Entry) => {
    const from = Number(sort)
    return { partition, group: [key], order: 'asc', from, to: from + 1, limit: 1 } as const
  }

/** Queries of inboxes and their mail (inbox-events). */
export function inboxViews(store: ViewStore) {
  const partitionOfInbox = (id: InboxId) => partitionOf(id, store.partitions)
  const everyPartition = Array.from({ length: store.partitions }, (_, partition) => partition)
  /** Sealed sources that were read from the log lately: those who read a message also read its attachments and images. */
  const sources = new LRUCache<MessageId, Uint8Array>({
    maxSize: MAX_SOURCES_BYTES,
    sizeCalculation: ({ length }) => length + SOURCE_OVERHEAD_BYTES,
  })

  const inbox = (id: InboxId): Promise<InboxRow | null> =>
    rowOf(store, tables.inboxes, { owner: null, key: id })
  const message = (key: MessageKey): Promise<MessageRow | null> =>
    rowOf(store, tables.messages, tables.messageKey(key))

  /**
   * Contents of a message, or null for a part that is not wanted. Contents are stored before the row of their message, and
   * may be left over after it.
   */
  async function contents(
    key: MessageKey,
    wanted: { body: boolean; raw: boolean },
  ): Promise<Record<Part, Uint8Array | null>> {
    const { log } = store
    const stored = (part: Part) => store.content(tables.messages, tables.messageKey(key), part)
    const [row, body, raw] = await Promise.all([
      message(key),
      wanted.body ? stored('body') : null,
      wanted.raw && log === null ? stored('raw') : null,
    ])
    if (row?.message.state !== 'present') return { body: null, raw: null }
    if (!wanted.raw || log === null) return { body, raw }
    const known = sources.get(key.messageId)
    if (known !== undefined) return { body, raw: known }
    const source = await sealedMailAt(log, partitionOfInbox(key.inboxId), row.offset)
    sources.set(key.messageId, source)
    return { body, raw: source }
  }

  /** The sealed bytes of the MessageReceived at an offset; empty if the record is damaged. */
  async function sealedMailAt(log: LogReader, partition: number, offset: number): Promise<Uint8Array> {
    const range = { topic: tables.messages.topic, partition, first: offset, end: offset + 1 }
    for await (const [record] of log.read(range)) {
      const decoded = record && decodedBefore(inboxEventCodec, record)
      if (decoded?.kind !== 'event' || decoded.recorded.event.type !== 'MessageReceived') continue
      return decoded.recorded.event.sealed
    }
    return new Uint8Array(0)
  }

  /**
   * The newest inbox that has the address. An entry may be older than the views, so it is valid only if the inbox has the
   * address.
   */
  async function inboxAt(address: Address): Promise<InboxRow | null> {
    const found: { row: InboxRow | null } = { row: null }
    const key = await store.lookup(tables.addresses, address, async (id) => {
      found.row = await inbox(brand('inb', id))
      return found.row?.inbox.address === address
    })
    return key === null ? null : found.row
  }

  return {
    progress: store.progress.bind(store),

    inbox,
    inboxAt,

    async listInboxes({
      address,
      ...query
    }: InboxListQuery & { address?: Address | null }): Promise<Inbox[]> {
      if (address === undefined || address === null) return listInboxes(store, query)
      const row = await inboxAt(address)
      return row === null ? [] : listed(row.inbox, query)
    },

    /** All events that changed the inbox, also available after its end. */
    async history({ inboxId, ...query }: MessageRangeQuery): Promise<HistoryEntry[]> {
      const range = { ...query, partition: partitionOfInbox(inboxId), group: [inboxId] }
      const [found = []] = await store.entries(tables.historyOrder, [range])
      return found.map(tables.historyEntryOf)
    },

    message,

    /** Without deleted messages. Fewer than the limit only if the range has no more. */
    async listMessages({ inboxId, ...query }: MessageRangeQuery): Promise<MessageRow[]> {
      const range = { ...query, partition: partitionOfInbox(inboxId), group: [inboxId] }
      const rows = await pageOfRows(store, tables.messageOrder, tables.messages, range)
      return rows.filter((row) => row.message.state === 'present')
    },

    /** The sealed envelope and source. */
    raw: async (key: MessageKey) => (await contents(key, { body: false, raw: true })).raw,

    /** What `openBody` opens, of a message whose source has that size; null if there is no message. */
    async sealedParts(key: MessageKey, size: number): Promise<SealedParts | null> {
      const needsRaw = needsSource(size)
      const { body, raw } = await contents(key, { body: true, raw: needsRaw })
      return body === null || (needsRaw && raw === null) ? null : { body, raw }
    },

    /**
     * The messages of an environment's active inboxes in one partition, without deleted ones and those of protected
     * inboxes. Fewer than the limit only if the range has no more.
     */
    async listEnvironmentMessages(query: EnvironmentQuery): Promise<EnvironmentMessage[]> {
      const range = { ...query, group: tables.environmentGroup(query) }
      const [found = []] = await store.entries(tables.environmentMessages, [range])
      return found.map(({ sort, key, value }) => {
        const [inboxId = '', receivedAtMs] = value.split(' ')
        const receivedAt = new Date(Number(receivedAtMs))
        return {
          inboxId: brand('inb', inboxId),
          messageId: brand('msg', key),
          receivedAt,
          offset: Number(sort),
        }
      })
    },

    /** Events that are sent without mail, as in the history of their inboxes. Otherwise as `listEnvironmentMessages`. */
    async listEnvironmentEvents(query: EnvironmentQuery): Promise<EnvironmentEvent[]> {
      const range = { ...query, group: tables.environmentGroup(query) }
      const [found = []] = await store.entries(tables.environmentEvents, [range])
      const events = await store.entries(tables.historyOrder, found.map(eventOf(query.partition)))
      return found.flatMap(({ key }, index) =>
        (events[index] ?? []).map((entry) => ({
          inboxId: brand('inb', key),
          entry: tables.historyEntryOf(entry),
        })),
      )
    },

    /** Who changed which inboxes of an account, in one partition. */
    async inboxActivity({ accountId, ...query }: InboxActivityQuery): Promise<ActivityEntry[]> {
      const [found = []] = await store.entries(tables.inboxActivity, [{ ...query, group: [accountId] }])
      const events = await store.entries(tables.historyOrder, found.map(eventOf(query.partition)))
      return found.flatMap(({ key: subject, value: environment }, index) =>
        (events[index] ?? []).map((entry) => {
          const { type, offset, id, time, keyId, actor, origin, changed, tokenId } =
            tables.historyEntryOf(entry)
          // Names and labels may be personal, so only their names are shown.
          const changes = (changed ?? []).map((field) => ({ field, from: null, to: null }))
          const token = { field: 'token', from: null, to: tokenId ?? null }
          return {
            ...{ type, offset, id, time, keyId, actor, subject, environment, isEffective: true },
            ...(origin === undefined ? {} : { origin }),
            changes: tokenId === undefined ? changes : [...changes, token],
          }
        }),
      )
    },

    async labelTotals({ name, value, now, ...owner }: LabelQuery): Promise<LabelTotals> {
      const group = tables.labelCountGroup(owner, name, value)
      const { count, sum } = sumOf(await store.totals(tables.labelCounts, group, tables.countedPeriods(now)))
      return { inboxes: count, received: sum }
    },

    /**
     * The inboxes that the totals count, with the number of messages that each has received, deleted ones included. Those
     * with the fewest come first.
     */
    async listLabelCounts(query: LabelCountQuery) {
      const { name, value, now, from, to, limit } = query
      const group = tables.labelCountGroup(query, name, value)
      const ranges = tables.countedPeriods(now).flatMap((period) =>
        everyPartition.map((partition) => {
          return { partition, group: [...group, period], order: 'asc' as const, from, to, limit }
        }),
      )
      const found = (await store.entries(tables.labelCounts, ranges)).flat()
      return found
        .map(({ sort, key }) => ({ inboxId: brand('inb', key), received: Number(sort) }))
        .sort((one, other) => one.received - other.received || (one.inboxId < other.inboxId ? -1 : 1))
        .slice(0, limit)
    },

    /** Leases inboxes that are past their expiry but still active in the views, earliest first. */
    async leaseDue({ now, limit }: { now: Date; limit: number }): Promise<InboxId[]> {
      const nowMs = now.getTime()
      for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
        const due = await store.due(tables.dueInboxes, nowMs, limit)
        const wanted = due.sort((one, other) => compare(one.entry, other.entry)).slice(0, limit)
        const claims = [...Map.groupBy(wanted, ({ partition }) => partition)].map(([partition, some]) =>
          store.claim(tables.dueInboxes, null, {
            ...{ partition, group: [], nowMs, untilMs: nowMs + EXPIRY_LEASE_MS },
            limit: some.length,
          }),
        )
        const leased = (await Promise.all(claims)).flat().map(({ entry }) => entry)
        if (wanted.length === 0 || leased.length > 0) {
          return leased.sort(compare).map(({ key }) => brand('inb', key))
        }
      }
      return []
    },

    /** How much an account uses of each quota, in their order. Inboxes just past their expiry count as active. */
    async usedQuotas(
      accountId: AccountId,
      quotas: readonly { quota: MailQuota; scope: QuotaScope }[],
      now: Date,
    ): Promise<number[]> {
      const names = quotas.map(({ quota, scope }) => tables.useName(quota, scope, dayOf(now)))
      return (await store.totals(tables.accountUse, [accountId], names)).map(({ sum }) => sum)
    },

    /** How many inboxes are active in the views, including those that are just past their expiry. */
    countActive: (): Promise<number> => store.size(tables.dueInboxes),
  }
}

function compare(one: Entry, other: Entry): number {
  return Number(one.sort) - Number(other.sort) || (one.key < other.key ? -1 : 1)
}
