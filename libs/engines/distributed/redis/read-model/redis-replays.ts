import { answersOf } from '#libs/engines/distributed/redis/client/answer.js'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { Script } from '#libs/engines/distributed/redis/client/script.js'
import type { ReplayId, WebhookId } from '#libs/domain/ids/typeid.js'
import type { Replay } from '#libs/domain/webhook/replay.js'
import type { ReplayKey } from '#libs/ports/read-model/projection-store.js'
import type { ReplayLeases, ListQuery, ReplayQueries } from '#libs/ports/read-model/queries.js'
import { idsIn, pageOfIds, reach, webhooksIn } from './lists.js'
import { type ViewKeys, askingMember, readAskingMember } from './keys.js'
import type { Tables } from './rows.js'

const TOPIC = 'webhook-events'
const IDS_AT_ONCE = 500

/** Replays among many processes. Leases end by the callers' clocks. */
export class RedisReplays implements ReplayQueries, ReplayLeases {
  private turn = 0

  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
    private readonly tables: Tables,
  ) {}

  replay(key: ReplayKey): Promise<Replay | null> {
    return this.tables.replays.get(key)
  }

  async listReplays(webhookId: WebhookId, query: ListQuery<ReplayId>): Promise<Replay[]> {
    const ids = await pageOfIds(this.client, this.keys.replayList(webhookId), '', 'rpl', query)
    const rows = await this.tables.replays.getAll(ids.map((replayId) => ({ webhookId, replayId })))
    return rows.filter((row) => row !== null)
  }

  async claimReplay(claim: { now: Date; leaseMs: number }): Promise<Replay | null> {
    const partitions = this.keys.everyPartition
    for (let looked = 0; looked < partitions.length; looked += 1) {
      this.turn = (this.turn + 1) % partitions.length
      const key = await this.claimIn(this.turn, claim)
      if (key !== null) return this.replay(key)
    }
    return null
  }

  async releaseReplay(key: ReplayKey, at: Date): Promise<void> {
    const asking = this.keys.askingReplays(this.keys.partitionOf(key.webhookId))
    await reach(() => this.client.zadd(asking, 'XX', at.getTime(), askingMember(key)))
  }

  async removeOldReplays(before: Date): Promise<number> {
    let count = 0
    for await (const webhookId of webhooksIn(this.client, this.keys)) {
      count += await this.removeOldOf(webhookId, before)
    }
    return count
  }

  private async claimIn(
    partition: number,
    { now, leaseMs }: { now: Date; leaseMs: number },
  ): Promise<ReplayKey | null> {
    const { client, keys } = this
    const all = [keys.slot({ topic: TOPIC, partition }), keys.askingReplays(partition)]
    const member = await reach(() => CLAIM_REPLAY.run(client, all, [now.getTime(), now.getTime() + leaseMs]))
    return typeof member === 'string' ? readAskingMember(member) : null
  }

  private async removeOldOf(webhookId: WebhookId, before: Date): Promise<number> {
    const { client, keys } = this
    const asking = keys.askingReplays(keys.partitionOf(webhookId))
    let count = 0
    for await (const ids of idsIn<ReplayId>(client, keys.replays(webhookId), IDS_AT_ONCE)) {
      const rows = await this.tables.replays.getAll(ids.map((replayId) => ({ webhookId, replayId })))
      const old = rows.flatMap((row) => (row !== null && row.requestedAt < before ? [row.id] : []))
      if (old.length === 0) continue
      const pipeline = client.pipeline()
      pipeline.zrem(asking, ...old.map((replayId) => askingMember({ webhookId, replayId })))
      pipeline.zrem(keys.replayList(webhookId), ...old)
      pipeline.hdel(keys.replays(webhookId), ...old)
      await reach(() => answersOf(pipeline))
      count += old.length
    }
    return count
  }
}

/**
 * Leases the replay that has waited longest (of the second key) and answers it; nothing if the slot (the first) is
 * catching up. Arguments: now, the lease's end.
 */
const CLAIM_REPLAY = new Script(`
local position, target = unpack(redis.call('HMGET', KEYS[1], 'position', 'target'))
if not position or tonumber(position) < tonumber(target) then return false end
local member = redis.call('ZRANGE', KEYS[2], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 1)[1]
if not member then return false end
redis.call('ZADD', KEYS[2], ARGV[2], member)
return member
`)
