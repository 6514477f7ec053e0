import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import type { DueInboxes } from '#libs/ports/read-model/queries.js'
import type { ViewKeys } from './keys.js'
import { reach } from './lists.js'
import { LEASABLE, LEASE } from './scripts.js'

const LEASE_MS = 10_000
/** Looks again where others were faster. */
const MAX_LOOKS = 10

/** Due inboxes among many processes: who leases one in its partition's script has it. Leases end by the callers' clocks. */
export class RedisDueInboxes implements DueInboxes {
  constructor(
    private readonly client: RedisClient,
    private readonly keys: ViewKeys,
  ) {}

  async leaseDue(now: Date, limit: number): Promise<InboxId[]> {
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      const wanted = await this.leasable(now, limit)
      const leased = await this.lease(now, wanted)
      if (wanted.length === 0 || leased.size > 0) return wanted.filter((id) => leased.has(id))
    }
    return []
  }

  async countActive(): Promise<number> {
    // An active inbox has one entry, in the set of its partition.
    const counts = await Promise.all(
      this.keys.everyPartition().map((partition) => reach(() => this.client.zcard(this.keys.due(partition)))),
    )
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** The earliest over all partitions, in order. */
  private async leasable(now: Date, limit: number): Promise<InboxId[]> {
    const found = await Promise.all(
      this.keys.everyPartition().map(async (partition) => {
        const answer = await this.run(LEASABLE, partition, [now.getTime(), limit])
        return answer.flatMap((id, index) =>
          index % 2 === 0 ? [{ id: id as InboxId, dueMs: Number(answer[index + 1]) }] : [],
        )
      }),
    )
    return found
      .flat()
      .sort((one, other) => one.dueMs - other.dueMs || (one.id < other.id ? -1 : 1))
      .slice(0, limit)
      .map(({ id }) => id)
  }

  private async lease(now: Date, ids: readonly InboxId[]): Promise<ReadonlySet<string>> {
    const byPartition = Map.groupBy(ids, (id) => this.keys.partitionOf(id))
    const leased = await Promise.all(
      [...byPartition].map(([partition, some]) =>
        this.run(LEASE, partition, [now.getTime(), now.getTime() + LEASE_MS, ...some]),
      ),
    )
    return new Set(leased.flat())
  }

  private async run(
    script: typeof LEASE,
    partition: number,
    args: readonly (string | number)[],
  ): Promise<string[]> {
    const keys = [this.keys.due(partition), this.keys.leases(partition)]
    return (await reach(() => script.run(this.client, keys, args))) as string[]
  }
}
