import { BULK_TIMEOUT_MS, reach, reachAll } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import {
  ownerOf,
  type Entry,
  type IndexInfo,
  type Range,
  type RowKey,
  type TableOf,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { chunksOf } from '#libs/runtime/chunks.js'
import { cbor } from './changes.js'
import { boundsOf, entryOf, groupPrefix, type ViewKeys } from './keys.js'

const MAX_AT_ONCE = 500

type Reads = Pick<ViewStore, 'rows' | 'content' | 'entries' | 'entriesWithRows' | 'size' | 'totals'>

/** Reads rows and entries of the views. `bulk` is used for contents. */
export function redisReads(client: RedisClient, bulk: RedisClient, keys: ViewKeys): Reads {
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
      const sizes = await reachAll(keys.everyPartition, (partition) =>
        client.zcard(keys.entries(index, partition, [])),
      )
      return sizes.reduce((sum, size) => sum + size, 0)
    },

    async totals(index, group, lasts) {
      const args = [groupPrefix(index, group), ...lasts]
      const sums = (await reachAll(keys.everyPartition, (partition) =>
        TOTALS.run(client, [keys.totals(index, partition)], args),
      )) as [count: number, sum: number][]
      return {
        count: sums.reduce((all, [count]) => all + count, 0),
        sum: sums.reduce((all, [, sum]) => all + sum, 0),
      }
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
export function entriesWithRowsIn<Row>(
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

/** Returns the totals of several groups. Arguments: what the groups begin with, the last element of each. */
const TOTALS = new Script(`
local count, sum = 0, 0
for at = 2, #ARGV do
  local field = ARGV[1] .. ARGV[at]
  local totals = redis.call('HMGET', KEYS[1], field .. ' count', field .. ' sum')
  count = count + tonumber(totals[1] or 0)
  sum = sum + tonumber(totals[2] or 0)
end
return {count, sum}
`)
