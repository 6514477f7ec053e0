import type { ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import { answersOf, reach } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { ReplayLeases, ReplayQueries } from '#libs/ports/read-model/queries.js'
import { type ViewKeys, pendingReplayMember, readPendingReplayMember } from './keys.js'
import { idsIn, pageOfIds, webhooksIn } from './lists.js'
import { IS_CATCHING_UP, LEASE_DUE } from './redis-due.js'
import type { Tables } from './rows.js'

const IDS_PER_SCAN = 500

/** Replays, shared by many processes. Leases end by the callers' clocks. */
export function redisReplays(
  client: RedisClient,
  keys: ViewKeys,
  { replays }: Tables,
): ReplayQueries & ReplayLeases {
  /** The partition of the last attempt to claim a replay. */
  let partition = 0

  return {
    replay: (key) => replays.get(key),

    async listReplays(webhookId, query) {
      const ids = await pageOfIds<ReplayId>(client, keys.replayList(webhookId), '', 'rpl', query)
      const rows = await replays.getAll(ids.map((replayId) => ({ webhookId, replayId })))
      return rows.filter((row) => row !== null)
    },

    async claimReplay({ now, leaseMs }) {
      const args = [now.getTime(), now.getTime() + leaseMs]
      for (const _ of keys.everyPartition) {
        partition = (partition + 1) % keys.everyPartition.length
        const all = [keys.progress({ topic: 'webhook-events', partition }), keys.pendingReplays(partition)]
        const member = await reach(() => CLAIM_REPLAY.run(client, all, args))
        if (typeof member === 'string') return replays.get(readPendingReplayMember(member))
      }
      return null
    },

    async releaseReplay(key, at) {
      const pending = keys.pendingReplays(keys.partitionOf(key.webhookId))
      await reach(() => client.zadd(pending, 'XX', at.getTime(), pendingReplayMember(key)))
    },

    async removeOldReplays(before) {
      let count = 0
      for await (const webhookId of webhooksIn(client, keys)) count += await removeOldOf(webhookId, before)
      return count
    },
  }

  async function removeOldOf(webhookId: WebhookId, before: Date): Promise<number> {
    const pending = keys.pendingReplays(keys.partitionOf(webhookId))
    let count = 0
    for await (const ids of idsIn<ReplayId>(client, keys.replays(webhookId), IDS_PER_SCAN)) {
      const rows = await replays.getAll(ids.map((replayId) => ({ webhookId, replayId })))
      const old = rows.flatMap((row) => (row !== null && row.requestedAt < before ? [row.id] : []))
      if (old.length === 0) continue
      const pipeline = client.pipeline()
      pipeline.zrem(pending, ...old.map((replayId) => pendingReplayMember({ webhookId, replayId })))
      pipeline.zrem(keys.replayList(webhookId), ...old)
      pipeline.hdel(keys.replays(webhookId), ...old)
      await reach(() => answersOf(pipeline))
      count += old.length
    }
    return count
  }
}

/**
 * Leases the replay that has waited longest, and returns its member; nothing while the partition is catching up. Keys:
 * progress, replays with more to request. Arguments: now, end of the lease.
 */
const CLAIM_REPLAY = new Script(`${IS_CATCHING_UP}${LEASE_DUE}
return not isCatchingUp() and leaseDue(KEYS[2], ARGV[1], ARGV[2], 1)[1]
`)
