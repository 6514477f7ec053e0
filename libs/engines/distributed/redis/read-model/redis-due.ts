import type { InboxId } from '#libs/domain/ids/typeid.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { DueInboxes } from '#libs/ports/read-model/queries.js'
import type { ViewKeys } from './keys.js'
import { reachEveryPartition } from './lists.js'

/*
 * Leases of due inboxes, and the Lua that the scripts for deliveries and replays share. An inbox keeps its expiry in the set
 * of due inboxes, so its lease is in another set. A delivery or replay is leased by changing its due time.
 */

/** Attempts if other processes lease the same inboxes first. */
const MAX_ATTEMPTS = 10

/** Due inboxes, shared by many processes. Scripts lease them in their partition. Leases end by the callers' clocks. */
export function dueInboxes(client: RedisClient, keys: ViewKeys): DueInboxes {
  return {
    async leaseDue({ now, leaseMs, limit }) {
      for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
        const wanted = await leasable(now, limit)
        const leased = await lease(wanted, now, leaseMs)
        if (wanted.length === 0 || leased.size > 0) return wanted.filter((id) => leased.has(id))
      }
      return []
    },

    async countActive() {
      // Each active inbox has one entry in the set of its partition.
      const counts = await reachEveryPartition(keys, (partition) => client.zcard(keys.due(partition)))
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }

  /** The earliest inboxes of all partitions that have no lease. */
  async function leasable(now: Date, limit: number): Promise<InboxId[]> {
    const found = await reachEveryPartition(keys, async (partition) => {
      const answer = await run(LEASABLE, partition, [now.getTime(), limit])
      return answer.flatMap((id, index) =>
        index % 2 === 0 ? [{ id: id as InboxId, dueMs: Number(answer[index + 1]) }] : [],
      )
    })
    return found
      .flat()
      .sort((one, other) => one.dueMs - other.dueMs || (one.id < other.id ? -1 : 1))
      .slice(0, limit)
      .map(({ id }) => id)
  }

  async function lease(ids: readonly InboxId[], now: Date, leaseMs: number): Promise<ReadonlySet<string>> {
    const times = [now.getTime(), now.getTime() + leaseMs]
    const byPartition = Map.groupBy(ids, keys.partitionOf)
    const leased = await reach(() =>
      Promise.all([...byPartition].map(([partition, some]) => run(LEASE, partition, [...times, ...some]))),
    )
    return new Set(leased.flat())
  }

  async function run(script: Script, partition: number, args: readonly (string | number)[]) {
    return (await script.run(client, [keys.due(partition), keys.leases(partition)], args)) as string[]
  }
}

/** Lua: whether the partition whose progress is the first key is catching up. */
export const IS_CATCHING_UP = `
local function isCatchingUp()
  local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
  return not position or tonumber(position) < tonumber(target)
end
`

/** Lua: leases up to `limit` due members of a sorted set, earliest first, by setting their score to the lease's end. */
export const LEASE_DUE = `
local function leaseDue(set, now, ends, limit)
  local members = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, member in ipairs(members) do redis.call('ZADD', set, ends, member) end
  return members
end
`

// Keys of the scripts for inboxes: due inboxes scored by their expiry, leased inboxes scored by the end of the lease.

/** Returns due inboxes without a lease, earliest first, each followed by its expiry. Arguments: now, limit. */
const LEASABLE = new Script(`
local now, limit, found, read = ARGV[1], tonumber(ARGV[2]), {}, 0
while #found < limit * 2 do
  local page = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', read, limit, 'WITHSCORES')
  for at = 1, #page, 2 do
    local lease = redis.call('ZSCORE', KEYS[2], page[at])
    if (not lease or tonumber(lease) <= tonumber(now)) and #found < limit * 2 then
      found[#found + 1] = page[at]
      found[#found + 1] = page[at + 1]
    end
  end
  read = read + limit
  if #page < limit * 2 then break end
end
return found
`)

/** Leases inboxes that are still due and have no lease, and returns their ids. Arguments: now, end of the lease, ids. */
const LEASE = new Script(`
local leased = {}
for at = 3, #ARGV do
  local id = ARGV[at]
  local lease = redis.call('ZSCORE', KEYS[2], id)
  if redis.call('ZSCORE', KEYS[1], id) and (not lease or tonumber(lease) <= tonumber(ARGV[1])) then
    redis.call('ZADD', KEYS[2], ARGV[2], id)
    leased[#leased + 1] = id
  end
end
return leased
`)
