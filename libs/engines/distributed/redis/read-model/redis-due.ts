import type { InboxId } from '#libs/domain/ids/typeid.js'
import { reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { DueInboxes } from '#libs/ports/read-model/queries.js'
import type { ViewKeys } from './keys.js'
import { reachEvery } from './lists.js'

const LEASE_MS = 10_000
/** How often it looks again if other processes were faster. */
const MAX_LOOKS = 10

/** Due inboxes among many processes: each is leased by the script of its partition. Leases end by the callers' clocks. */
export function dueInboxes(client: RedisClient, keys: ViewKeys): DueInboxes {
  return {
    async leaseDue(now, limit) {
      for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
        const wanted = await leasable(now, limit)
        const leased = await lease(now, wanted)
        if (wanted.length === 0 || leased.size > 0) return wanted.filter((id) => leased.has(id))
      }
      return []
    },

    async countActive() {
      // An active inbox has one entry, in the set of its partition.
      const counts = await reachEvery(keys, (partition) => client.zcard(keys.due(partition)))
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }

  /** The earliest over all partitions, in order. */
  async function leasable(now: Date, limit: number): Promise<InboxId[]> {
    const found = await reachEvery(keys, async (partition) => {
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

  async function lease(now: Date, ids: readonly InboxId[]): Promise<ReadonlySet<string>> {
    const times = [now.getTime(), now.getTime() + LEASE_MS]
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

// The scripts' keys: due inboxes by their expiry, and leased ones by the lease's end.

/** Due inboxes that nobody has leased, earliest first, each followed by its expiry. Arguments: now, most of them. */
const LEASABLE = new Script(`
local now, most, found, seen = ARGV[1], tonumber(ARGV[2]), {}, 0
while #found < most * 2 do
  local page = redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', seen, most, 'WITHSCORES')
  for at = 1, #page, 2 do
    local lease = redis.call('ZSCORE', KEYS[2], page[at])
    if (not lease or tonumber(lease) <= tonumber(now)) and #found < most * 2 then
      found[#found + 1] = page[at]
      found[#found + 1] = page[at + 1]
    end
  end
  seen = seen + most
  if #page < most * 2 then break end
end
return found
`)

/** Leases those of the ids that are still due and free; answers them. Arguments: now, the leases' end, ids. */
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
