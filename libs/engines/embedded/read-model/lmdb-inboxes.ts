import { setImmediate as nextTurn } from 'node:timers/promises'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { Address } from '#libs/domain/inbox/events.js'
import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import type { Partition } from '#libs/ports/event-log/event-log.js'
import type { MessageKey } from '#libs/ports/read-model/projection-store.js'
import {
  comesBefore,
  fewestFirst,
  matchesList,
  MAX_DUE_INBOXES,
  type DueInboxes,
  type EnvironmentQuery,
  type InboxCount,
  type InboxListQuery,
  type LabelCountQuery,
  type LabelQuery,
  type LabelTotals,
  type MailQueries,
  type MessageRangeQuery,
  type Progress,
} from '#libs/ports/read-model/queries.js'
import { countedPeriods } from '#libs/ports/read-model/index-entries.js'
import type {
  EnvironmentEnding,
  EnvironmentMessage,
  HistoryEntry,
  InboxRow,
  MessageRow,
} from '#libs/ports/read-model/views.js'
import {
  afterIds,
  beforeIds,
  idRange,
  offsetRange,
  type DueKey,
  type LabelCountKey,
  type Tables,
} from './tables.js'

/*
 * The queries of inboxes and their messages (inbox-events) in LMDB.
 */

/** A list yields to other requests after it has read this number of inboxes. */
const INBOXES_PER_TURN = 500

export class LmdbInboxes implements MailQueries, DueInboxes {
  /** When each lease ends. Kept in memory, because one process uses the folder. */
  private readonly leases = new Map<InboxId, number>()

  constructor(private readonly tables: Tables) {}

  progress({ topic, partition }: Partition): Promise<Progress | null> {
    const row = this.tables.progress.get([topic, partition])
    if (row === undefined) return Promise.resolve(null)
    const { logId, position, target, begunAtMs } = row
    return Promise.resolve({ topic, partition, logId, position, target, begunAtMs })
  }

  inbox(id: InboxId): Promise<InboxRow | null> {
    return Promise.resolve(this.tables.inboxes.get(id) ?? null)
  }

  inboxAt(address: Address): Promise<InboxRow | null> {
    const id = this.tables.addresses.get(address)
    return id === undefined ? Promise.resolve(null) : this.inbox(id)
  }

  async listInboxes(query: InboxListQuery): Promise<Inbox[]> {
    const inboxes: Inbox[] = []
    let read = 0
    for (const id of this.candidates(query)) {
      read += 1
      if (read % INBOXES_PER_TURN === 0) await nextTurn()
      const row = this.tables.inboxes.get(id)
      if (row === undefined) continue
      const inbox = asOf(row.inbox, query.now)
      if (inbox.state !== query.state || !matchesList(inbox, query)) continue
      inboxes.push(inbox)
      if (inboxes.length === query.limit) break
    }
    return inboxes
  }

  message({ inboxId, messageId }: MessageKey): Promise<MessageRow | null> {
    return Promise.resolve(this.tables.messages.get([inboxId, messageId]) ?? null)
  }

  listMessages({ inboxId, ...range }: MessageRangeQuery): Promise<MessageRow[]> {
    const listed = this.tables.messageIndex.getRange(offsetRange([inboxId], range))
    return Promise.resolve(
      [...listed].flatMap(({ value }) => this.tables.messages.get([inboxId, value]) ?? []),
    )
  }

  listEnvironmentMessages(query: EnvironmentQuery): Promise<EnvironmentMessage[]> {
    const { accountId, environment, partition } = query
    const listed = this.tables.environmentMessages.getRange(
      offsetRange([accountId, environment, partition], query),
    )
    const messages = [...listed].map(({ key, value: [inboxId, messageId, receivedAtMs] }) => ({
      ...{ inboxId, messageId, receivedAt: new Date(receivedAtMs), offset: key[3] },
    }))
    return Promise.resolve(messages)
  }

  listEnvironmentEndings(query: EnvironmentQuery): Promise<EnvironmentEnding[]> {
    const { accountId, environment, partition } = query
    const listed = this.tables.environmentEndings.getRange(
      offsetRange([accountId, environment, partition], query),
    )
    const endings = [...listed].flatMap(({ key, value: inboxId }) => {
      const entry = this.tables.history.get([inboxId, key[3]])
      return entry === undefined ? [] : [{ inboxId, entry }]
    })
    return Promise.resolve(endings)
  }

  labelTotals({ accountId, environment, name, value, now }: LabelQuery): Promise<LabelTotals> {
    const sum: LabelTotals = { inboxes: 0, received: 0 }
    for (const period of countedPeriods(now)) {
      const total = this.tables.labelTotals.get([accountId, environment, name, value, period])
      sum.inboxes += total?.inboxes ?? 0
      sum.received += total?.received ?? 0
    }
    return Promise.resolve(sum)
  }

  listLabelCounts(query: LabelCountQuery): Promise<InboxCount[]> {
    const { accountId, environment, name, value, now, from, to, limit } = query
    const lists = countedPeriods(now).map((period): InboxCount[] => {
      const startOf = (received: number): LabelCountKey => {
        return [accountId, environment, name, value, period, received, beforeIds('inb')]
      }
      const keys = this.tables.labelCounts.getKeys({ start: startOf(from), end: startOf(to), limit })
      return [...keys].map(([, , , , , received, inboxId]) => ({ inboxId, received }))
    })
    return Promise.resolve(fewestFirst(lists, limit))
  }

  body({ messageId }: MessageKey): Promise<Uint8Array | null> {
    return Promise.resolve(this.tables.bodies.get(messageId) ?? null)
  }

  raw({ messageId }: MessageKey): Promise<Uint8Array | null> {
    return Promise.resolve(this.tables.raws.get(messageId) ?? null)
  }

  history({ inboxId, ...range }: MessageRangeQuery): Promise<HistoryEntry[]> {
    const entries = this.tables.history.getRange(offsetRange([inboxId], range))
    return Promise.resolve([...entries].map(({ value }) => value))
  }

  leaseDue({ now, leaseMs, limit }: { now: Date; leaseMs: number; limit: number }): Promise<InboxId[]> {
    const nowMs = now.getTime()
    for (const [id, until] of this.leases) if (until <= nowMs) this.leases.delete(id)
    const due: InboxId[] = []
    for (const [, id] of this.dueUntil(now)) {
      if (this.leases.has(id)) continue
      this.leases.set(id, nowMs + leaseMs)
      due.push(id)
      if (due.length === limit) break
    }
    return Promise.resolve(due)
  }

  countActive(): Promise<number> {
    // An active inbox has one entry. LMDB maintains the statistics of a table, so no rows are read.
    const { entryCount } = this.tables.due.getStats() as { entryCount: number }
    return Promise.resolve(entryCount)
  }

  private dueUntil(now: Date): Iterable<DueKey> {
    return this.tables.due.getKeys({ start: [0, beforeIds('inb')], end: [now.getTime(), afterIds('inb')] })
  }

  /** Ids that may match, in order. Inboxes past their expiry are still in the list of active ones. */
  private candidates(query: InboxListQuery): Iterable<InboxId> {
    const listed = this.listed(query)
    if (query.state !== 'expired') return listed
    const { after, order } = query
    const due: InboxId[] = []
    for (const [, id] of this.dueUntil(query.now)) {
      due.push(id)
      if (due.length > MAX_DUE_INBOXES)
        return merge(listed, this.listed({ ...query, state: 'active' }), order)
    }
    const ascending = due.filter((id) => after === null || comesBefore(after, id, order)).sort()
    return merge(listed, order === 'asc' ? ascending : ascending.reverse(), order)
  }

  private listed(query: InboxListQuery): Iterable<InboxId> {
    const { accountId, environment, state, labels, order, after } = query
    const list = { order, after, limit: Infinity }
    const [label] = labels
    if (label === undefined) {
      const range = idRange([accountId, environment, state], 'inb', list)
      return this.tables.listing.getKeys(range).map(([, , , id]) => id)
    }
    const range = idRange([accountId, environment, state, ...label], 'inb', list)
    return this.tables.labels.getKeys(range).map(([, , , , , id]) => id)
  }
}

/** Merges two sorted lists. An id in both is yielded once. */
function* merge(
  ids: Iterable<InboxId>,
  others: Iterable<InboxId>,
  order: 'asc' | 'desc',
): Generator<InboxId, void, undefined> {
  const rest = others[Symbol.iterator]()
  let other = rest.next()
  for (const id of ids) {
    for (; other.done !== true && comesBefore(other.value, id, order); other = rest.next()) yield other.value
    if (other.value === id) other = rest.next()
    yield id
  }
  for (; other.done !== true; other = rest.next()) yield other.value
}
