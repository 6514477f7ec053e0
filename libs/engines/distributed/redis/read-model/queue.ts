import { reach, reachAll } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import {
  ownerOf,
  type Claim,
  type Entry,
  type IndexInfo,
  type TableOf,
  type ViewStore,
} from '#libs/ports/read-model/view-store.js'
import { entryOf, memberOf, type ViewKeys } from './keys.js'
import { entriesWithRowsIn } from './reads.js'

/*
 * The queues of the views, shared by many processes. A script leases entries of one partition, by setting their scores to
 * the end of the lease. Leases end by the callers' clocks.
 */

const OWNERS_PER_PAGE = 500

type Queues = Pick<ViewStore, 'due' | 'claim' | 'release' | 'dueOwners' | 'earliestDueMs'>

export function redisQueues(client: RedisClient, keys: ViewKeys): Queues {
  const { everyPartition } = keys

  return {
    async due(queue, nowMs, limit) {
      const pages = await reachAll(everyPartition, (partition) => {
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
      let partitions = everyPartition
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
      const firsts = await reachAll(everyPartition, (partition) =>
        client.zrange(keys.owners(queue, partition), '0', '0', 'WITHSCORES'),
      )
      const times = firsts.flatMap(([, dueAtMs]) => (dueAtMs === undefined ? [] : [Number(dueAtMs)]))
      return times.length === 0 ? null : Math.min(...times)
    },
  }
}

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
