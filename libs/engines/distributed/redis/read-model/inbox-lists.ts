import { asOf, type Inbox } from '#libs/domain/inbox/inbox.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import {
  comesBefore,
  matchesList,
  MAX_DUE_INBOXES,
  type InboxListQuery,
  type InboxQueries,
} from '#libs/ports/read-model/queries.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { labelScope, listScope, type ViewKeys } from './keys.js'
import { pageOfIds, reachEveryPartition } from './lists.js'
import type { Tables } from './rows.js'

const FIRST_ID = 'inb_'
const LAST_ID = 'inb_~'
/** Ids read beyond a partition's even share of a page, because shares differ and another round trip costs more. */
const SPARE_IDS = 10
const ACTIVE_AT_ONCE = 500

/** The ids after one scope, in a sorted set for each partition. */
interface List {
  key: (partition: number) => string
  scope: string
}

/** Merges the lists of all partitions, each of which is ordered by id. */
export function inboxLists(client: RedisClient, keys: ViewKeys, tables: Tables): InboxQueries['listInboxes'] {
  return async (query) => {
    const lists = [await narrowest(query)]
    let limit = query.limit
    // Inboxes past their expiry are still in the list of active ones.
    const due = query.state === 'expired' ? await dueUntil(query.now) : []
    if (due === null) {
      lists.push(await narrowest({ ...query, state: 'active' }))
      limit = Math.max(limit, ACTIVE_AT_ONCE)
    }
    const found: Inbox[] = []
    for (let after = query.after; ;) {
      const { ids, end } = await candidates({ ...query, after, limit }, lists, due ?? [])
      for (const chunk of chunksOf(ids, limit)) {
        for (const row of await tables.inboxes.getAll(chunk)) {
          const inbox = row === null ? null : asOf(row.inbox, query.now)
          if (inbox === null || inbox.state !== query.state || !matchesList(inbox, query)) continue
          found.push(inbox)
          if (found.length === query.limit) return found
        }
      }
      if (end === null) return found
      after = end
    }
  }

  /**
   * The next ids that may match, in order, and the last of them; null if there are no more. A partition whose page is full
   * may have more ids. So the ids are complete only up to the last id of the full page that ends first.
   */
  async function candidates(
    query: InboxListQuery,
    lists: readonly List[],
    due: readonly InboxId[],
  ): Promise<{ ids: InboxId[]; end: InboxId | null }> {
    const share = Math.min(query.limit, Math.ceil((2 * query.limit) / keys.everyPartition.length) + SPARE_IDS)
    const pages = await Promise.all(
      lists.flatMap(({ key, scope }) =>
        keys.everyPartition.map((partition) =>
          pageOfIds(client, key(partition), scope, 'inb', { ...query, limit: share }),
        ),
      ),
    )
    const { after, order } = query
    let end: InboxId | null = null
    for (const page of pages) {
      const last = page.length < share ? undefined : page.at(-1)
      if (last !== undefined && (end === null || comesBefore(last, end, order))) end = last
    }
    const ids = [...new Set([...pages.flat(), ...due])].filter(
      (id) =>
        (after === null || comesBefore(after, id, order)) && (end === null || !comesBefore(end, id, order)),
    )
    return { ids: ids.sort((one, other) => (comesBefore(one, other, order) ? -1 : 1)), end }
  }

  /** The shortest of the lists of the query's labels; without a label, the list of all inboxes. */
  async function narrowest(query: InboxListQuery): Promise<List> {
    const { listing, labels: key } = keys
    const [only, ...others] = query.labels.map(([name, value]) => labelScope(query, name, value))
    if (only === undefined) return { key: listing, scope: listScope(query) }
    if (others.length === 0) return { key, scope: only }
    const lengths = await Promise.all(
      [only, ...others].map(async (scope) => ({ scope, length: await lengthOf(key, scope) })),
    )
    const shortest = lengths.reduce((one, other) => (other.length < one.length ? other : one))
    return { key, scope: shortest.scope }
  }

  async function lengthOf(key: List['key'], scope: string): Promise<number> {
    const [first, last] = [`(${scope}${FIRST_ID}`, `(${scope}${LAST_ID}`]
    const lengths = await reachEveryPartition(keys, (partition) =>
      client.zlexcount(key(partition), first, last),
    )
    return lengths.reduce((sum, length) => sum + length, 0)
  }

  /** Inboxes of all accounts that are past their expiry; null if there are more than MAX_DUE_INBOXES. */
  async function dueUntil(now: Date): Promise<InboxId[] | null> {
    const nowMs = String(now.getTime())
    const found = await reachEveryPartition(keys, (partition) =>
      client.zrange(keys.due(partition), '-inf', nowMs, 'BYSCORE', 'LIMIT', 0, MAX_DUE_INBOXES + 1),
    )
    const ids = found.flat() as InboxId[]
    return ids.length > MAX_DUE_INBOXES ? null : ids
  }
}
