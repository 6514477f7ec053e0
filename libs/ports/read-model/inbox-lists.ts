import { setImmediate as nextTurn } from 'node:timers/promises'
import type { AccountId, InboxId } from '#libs/domain/ids/typeid.js'
import { asOf, type ActiveInbox, type Inbox } from '#libs/domain/inbox/inbox.js'
import { keyRange, type ListQuery } from './lists.js'
import * as tables from './tables.js'
import { sumOf, type IndexInfo, type ViewStore } from './view-store.js'

/** Inboxes are listed by id, which is the order of their creation. */
export interface InboxListQuery extends ListQuery<InboxId> {
  accountId: AccountId
  environment: string
  state: Inbox['state']
  /** An inbox must have all of these labels. */
  labels: readonly (readonly [name: string, value: string])[]
  /** Inboxes past their expiry at this time count as expired. */
  now: Date
}

/**
 * The list of expired inboxes includes inboxes of any account that are past their expiry. If there are more than this,
 * it reads the account's own active inboxes instead.
 */
export const MAX_DUE_INBOXES = 1_000
/** An inbox that a process has leased to end it is due again after this time. */
export const EXPIRY_LEASE_MS = 10_000
/** Keys read beyond a partition's even share of a page, because shares differ and another round trip costs more. */
const SPARE_KEYS = 10
const ACTIVE_AT_ONCE = 500

/** One list in every partition, ordered by id. */
interface List {
  index: IndexInfo
  group: readonly string[]
}

/** Merges the lists of all partitions. */
export async function listInboxes(store: ViewStore, query: InboxListQuery): Promise<Inbox[]> {
  const everyPartition = Array.from({ length: store.partitions }, (_, partition) => partition)
  const lists = [await narrowest(query)]
  let { limit } = query
  // Inboxes past their expiry are still in the list of active ones.
  const due = query.state === 'expired' ? await dueUntil(query.now) : []
  if (due === null) {
    lists.push(await narrowest({ ...query, state: 'active' }))
    limit = Math.max(limit, ACTIVE_AT_ONCE)
  }
  const found: Inbox[] = []
  for (let after: string | null = query.after; ;) {
    const { keys, end } = await candidates(after, limit)
    for (let at = 0; at < keys.length; at += limit) {
      const some = keys.slice(at, at + limit).map((key) => ({ owner: null, key }))
      for (const row of await store.rows(tables.inboxes, some)) {
        if (row !== null) found.push(...listed(row.inbox, query))
        if (found.length === query.limit) return found
      }
    }
    if (end === null) return found
    after = end
    // An engine in this process has blocked other requests until now.
    await nextTurn()
  }

  /**
   * The next ids that may match, in order, and the last of them; null if there are no more. A partition whose page is full
   * may have more ids. So the ids are complete only up to the last id of the full page that ends first.
   */
  async function candidates(
    after: string | null,
    atOnce: number,
  ): Promise<{ keys: string[]; end: string | null }> {
    const { order } = query
    const share = Math.min(atOnce, Math.ceil((2 * atOnce) / store.partitions) + SPARE_KEYS)
    const pages = await Promise.all(
      lists.map(({ index, group }) =>
        store.entries(
          index,
          everyPartition.map((partition) => keyRange(partition, group, { order, after, limit: share })),
        ),
      ),
    )
    let end: string | null = null
    for (const page of pages.flat()) {
      const last = page.length < share ? undefined : page.at(-1)?.key
      if (last !== undefined && (end === null || comesBefore(last, end))) end = last
    }
    const keys = new Set([...pages.flat(2).map(({ key }) => key), ...(due ?? [])])
    const inOrder = [...keys].filter(
      (key) => (after === null || comesBefore(after, key)) && (end === null || !comesBefore(end, key)),
    )
    return { keys: inOrder.sort((one, other) => (comesBefore(one, other) ? -1 : 1)), end }
  }

  function comesBefore(one: string, other: string): boolean {
    return query.order === 'asc' ? one < other : one > other
  }

  /** The list of the query's label that the fewest inboxes have; without a label, the list of all inboxes. */
  async function narrowest(of: InboxListQuery): Promise<List> {
    const counted = await Promise.all(
      of.labels.map(async ([name, value], _, { length }) => {
        const group = tables.labelGroup(of, name, value)
        const counts = tables.labelCountGroup(of, name, value)
        // Inboxes that are protected or have ended long ago are not counted, so another list may be shorter.
        const totals =
          length === 1 ? [] : await store.totals(tables.labelCounts, counts, tables.countedPeriods(of.now))
        return { index: tables.labels, group, count: sumOf(totals).count }
      }),
    )
    const [fewest] = counted.sort((one, other) => one.count - other.count)
    return fewest ?? { index: tables.listing, group: tables.listGroup(of) }
  }

  /** Inboxes of all accounts that are past their expiry, also leased ones; null if there are more than MAX_DUE_INBOXES. */
  async function dueUntil(now: Date): Promise<string[] | null> {
    const found = await store.due(tables.dueInboxes, now.getTime() + EXPIRY_LEASE_MS, MAX_DUE_INBOXES + 1)
    return found.length > MAX_DUE_INBOXES ? null : found.map(({ entry }) => entry.key)
  }
}

/** The inbox as it is at the query's time, if the query's list has it. */
export function listed(
  stored: Inbox,
  { accountId, environment, state, labels, now }: InboxListQuery,
): Inbox[] {
  const inbox = asOf(stored, now)
  const isWanted =
    inbox.accountId === accountId &&
    inbox.environment === environment &&
    inbox.state === state &&
    labels.every(([name, value]) => inbox.labels[name] === value)
  return isWanted ? [inbox] : []
}

export interface ActiveInboxesQuery extends Pick<InboxListQuery, 'accountId' | 'environment' | 'labels'> {
  after: InboxId | null
  pageSize: number
  now: () => Date
}

/** The active inboxes of an environment that have all of these labels, in pages, oldest first. */
export async function* activeInboxes(
  list: (query: InboxListQuery) => Promise<Inbox[]>,
  { pageSize, now, ...query }: ActiveInboxesQuery,
): AsyncGenerator<ActiveInbox[]> {
  for (let { after } = query; ;) {
    const page = await list({ ...query, state: 'active', order: 'asc', limit: pageSize, after, now: now() })
    yield page.filter((inbox) => inbox.state === 'active')
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    after = last.id
  }
}
