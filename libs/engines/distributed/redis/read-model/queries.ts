import { BULK_TIMEOUT_MS, reach, reachAll } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import {
  ownerOf,
  sumOf,
  type Claim,
  type Entry,
  type IndexInfo,
  type Range,
  type RowKey,
  type TableOf,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { cbor } from './changes.js'
import { boundsOf, entryOf, groupPrefix, memberOf, type ViewKeys } from './keys.js'

/*
 * What is read from the views, and their queues, which many processes share. A script leases entries of one partition, by
 * setting their scores to the end of the lease. Leases end by the callers' clocks.
 */

const MAX_AT_ONCE = 500
const OWNERS_PER_PAGE = 500

type Written = 'begin' | 'apply' | 'write'
type Queries = Omit<ViewStore, 'partitions' | 'log' | 'progress' | 'keysOf' | 'lookup' | Written>

/** Reads and claims rows and entries of the views. `bulk` is used for contents. */
export function redisQueries(client: RedisClient, bulk: RedisClient, keys: ViewKeys): Queries {
  return {
    rows,

    content: (table, key, part) =>
      reach(() => bulk.getBuffer(keys.content(table, key, part)), BULK_TIMEOUT_MS),

    entries,

    async entriesWithRows<Row>(index: IndexInfo, table: TableOf<Row>, ranges: readonly Range[]) {
      const pages = await reachAll(ranges, (range) => {
        const { partition, group, limit, order } = range
        const owner = ownerOf(table, group)
        const all = [keys.entries(index, partition, group), keys.rows(table, partition, owner)]
        const [low, high] = boundsOf(index, range)
        const skipped = groupPrefix(index, group).length
        const args = [low, high, order, limitOf(limit), skipped, index.sort]
        return PAGE_WITH_ROWS.runForBytes(client, all, args)
      })
      return pages.map((page, at) => entriesWithRowsIn(index, table, ranges[at]?.group ?? [], page))
    },

    async size(index) {
      const sizes = await reachAll(keys.partitionsOf(index), (partition) =>
        client.zcard(keys.entries(index, partition, [])),
      )
      return sizes.reduce((sum, size) => sum + size, 0)
    },

    async totals(index, group, lasts) {
      const args = [groupPrefix(index, group), ...lasts]
      const found = (await reachAll(keys.partitionsOf(index), (partition) =>
        TOTALS.run(client, [keys.totals(index, partition)], args),
      )) as (readonly [count: number, sum: number])[][]
      return lasts.map((_, at) =>
        sumOf(found.map((ofPartition) => ofPartition[at] ?? [0, 0]).map(([count, sum]) => ({ count, sum }))),
      )
    },

    async due(queue, nowMs, limit) {
      const pages = await reachAll(keys.partitionsOf(queue), (partition) => {
        const set = keys.entries(queue, partition, [])
        return client.zrange(set, '-inf', String(nowMs), 'BYSCORE', 'LIMIT', 0, limit)
      })
      return pages.flatMap((members, partition) =>
        members.map((member) => ({ partition, entry: entryOf(queue, [], member) })),
      )
    },

    async claim<Row>(queue: IndexInfo, table: TableOf<Row> | null, claim: Claim) {
      const { partition, group, nowMs, untilMs, limit } = claim
      const [owner = ''] = group
      const all = [
        keys.progress({ topic: queue.topic, partition }),
        keys.entries(queue, partition, group),
        keys.owners(queue, partition),
        ...(table === null ? [] : [keys.rows(table, partition, ownerOf(table, group))]),
      ]
      const args = [Number(queue.needsCompleteViews), queue.isOwned ? owner : '', nowMs, untilMs, limit]
      const answer = await reach(() => CLAIM.runForBytes(client, all, args))
      return entriesWithRowsIn(queue, table, group, answer)
    },

    async release(queue, partition, entry: Entry, untilMs) {
      const set = keys.entries(queue, partition, entry.group)
      await reach(() => client.zadd(set, 'XX', untilMs, memberOf(queue, entry)))
    },

    /** Yields the first pages of all partitions together, then the second ones, and so on. */
    async *dueOwners(queue, nowMs) {
      let partitions = keys.partitionsOf(queue)
      for (let skipped = 0; partitions.length > 0; skipped += OWNERS_PER_PAGE) {
        const args = [Number(queue.needsCompleteViews), nowMs, skipped, OWNERS_PER_PAGE]
        const pages = (await reachAll(partitions, (partition) => {
          const all = [keys.progress({ topic: queue.topic, partition }), keys.owners(queue, partition)]
          return DUE_OWNERS.run(client, all, args)
        })) as string[][]
        yield pages.flat()
        partitions = partitions.filter((_, index) => pages[index]?.length === OWNERS_PER_PAGE)
      }
    },

    async earliestDueMs(queue) {
      const firsts = await reachAll(keys.partitionsOf(queue), (partition) =>
        client.zrange(keys.owners(queue, partition), '0', '0', 'WITHSCORES'),
      )
      const times = firsts.flatMap(([, dueAtMs]) => (dueAtMs === undefined ? [] : [Number(dueAtMs)]))
      return times.length === 0 ? null : Math.min(...times)
    },
  }

  /** Rows of one hash are read with one command, many commands in one round trip. */
  async function rows<Row>(table: TableOf<Row>, rowKeys: readonly RowKey[]): Promise<(Row | null)[]> {
    const found = new Map<RowKey, Row>()
    const hashOf = (key: RowKey) =>
      keys.rows(table, keys.partitionOfRow(table, key), table.ownedBy === null ? null : key.owner)
    const commands = [...Map.groupBy(rowKeys, hashOf)].flatMap(([hash, inHash]) =>
      [...chunksOf(inHash, MAX_AT_ONCE)].map((chunk) => ({ hash, chunk })),
    )
    for (const some of chunksOf(commands, MAX_AT_ONCE)) {
      await reachAll(some, async ({ hash, chunk }) => {
        const values = await client.hmgetBuffer(hash, ...chunk.map(({ key }) => key))
        for (const [at, key] of chunk.entries()) {
          const bytes = values[at] ?? null
          // Not validated: only the store writes rows, and views of another form are rebuilt.
          if (bytes !== null) found.set(key, cbor.decode(bytes) as Row)
        }
      })
    }
    return rowKeys.map((key) => found.get(key) ?? null)
  }

  async function entries(index: IndexInfo, ranges: readonly Range[]): Promise<Entry[][]> {
    const pages = await reachAll(ranges, (range) => {
      const set = keys.entries(index, range.partition, range.group)
      const [low, high] = boundsOf(index, range)
      const limit = limitOf(range.limit)
      return range.order === 'asc'
        ? client.zrange(set, low, high, 'BYLEX', 'LIMIT', 0, limit)
        : client.zrange(set, high, low, 'BYLEX', 'REV', 'LIMIT', 0, limit)
    })
    return pages.map((members, at) =>
      members.map((member) => entryOf(index, ranges[at]?.group ?? [], member)),
    )
  }
}

/** The entries of a group in the answer of a script: members of their set, and the rows that they lead to. */
function entriesWithRowsIn<Row>(
  index: IndexInfo,
  table: TableOf<Row> | null,
  group: readonly string[],
  answer: unknown,
): { entry: Entry; row: Row | null }[] {
  const [members, rows] = answer as [members: Buffer[], rows: (Buffer | null)[]]
  return members.map((member, at) => {
    const bytes = table === null ? null : (rows[at] ?? null)
    const row = bytes === null ? null : (cbor.decode(bytes) as Row)
    return { entry: entryOf(index, group, member.toString()), row }
  })
}

/** -1 is no limit. */
function limitOf(limit: number): number {
  return Number.isFinite(limit) ? limit : -1
}

/**
 * Returns a page of members, and the rows that they lead to. Keys: entries, rows. Arguments: the lower and the upper bound,
 * the order, the limit, the length of what members begin with, the kind of sort.
 */
const PAGE_WITH_ROWS = new Script(`
local members
if ARGV[3] == 'asc' then
  members = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[4])
else
  members = redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[1], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
end
local pattern = ARGV[6] == 'none' and '^(%S+)' or '^%S+ (%S+)'
local rows = {}
for at, member in ipairs(members) do
  rows[at] = redis.call('HGET', KEYS[2], string.match(string.sub(member, ARGV[5] + 1), pattern))
end
return {members, rows}
`)

/** Returns the totals of each of several groups. Arguments: what the groups begin with, the last element of each. */
const TOTALS = new Script(`
local found = {}
for at = 2, #ARGV do
  local field = ARGV[1] .. ARGV[at]
  local totals = redis.call('HMGET', KEYS[1], field .. ' count', field .. ' sum')
  found[at - 1] = {tonumber(totals[1] or 0), tonumber(totals[2] or 0)}
end
return found
`)

/** Lua: whether the partition whose progress is the first key must wait because it is catching up. */
const MUST_WAIT = `
local function mustWait()
  if ARGV[1] == '0' then return false end
  local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
  return not position or tonumber(position) < tonumber(target)
end
`

/**
 * Returns owners that may have entries due, earliest first. Keys: progress, owners by due time. Arguments: whether views
 * must be complete, now, number of owners to skip, limit.
 */
const DUE_OWNERS = new Script(`${MUST_WAIT}
if mustWait() then return {} end
return redis.call('ZRANGE', KEYS[2], '-inf', ARGV[2], 'BYSCORE', 'LIMIT', ARGV[3], ARGV[4])
`)

/**
 * Leases due entries of one group, earliest first, and returns their members and rows. Keys: progress, entries, owners by
 * due time, rows if they are wanted. Arguments: whether views must be complete, the owner or an empty string, now, end of
 * the lease, limit.
 */
const CLAIM = new Script(`${MUST_WAIT}
if mustWait() then return {{}, {}} end
local members = redis.call('ZRANGE', KEYS[2], '-inf', ARGV[3], 'BYSCORE', 'LIMIT', 0, ARGV[5])
local rows = {}
for at, member in ipairs(members) do
  redis.call('ZADD', KEYS[2], ARGV[4], member)
  if KEYS[4] then rows[at] = redis.call('HGET', KEYS[4], string.match(member, '^%S+ (%S+)')) end
end
if ARGV[2] ~= '' then
  local earliest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if earliest[2] then
    redis.call('ZADD', KEYS[3], earliest[2], ARGV[2])
  else
    redis.call('ZREM', KEYS[3], ARGV[2])
  end
end
return {members, rows}
`)
