import { randomUUID } from 'node:crypto'
import { Cluster } from 'ioredis'
import type { RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { readModel } from '#libs/ports/read-model/queries.js'
import { PARTITIONS, type ReadModelHarness } from '#libs/ports/read-model/read-model-harness.contract.js'
import { redisViewStore } from './redis-view-store.js'

/** Views with a prefix of their own in a shared Redis. */
export interface RedisHarness extends ReadModelHarness {
  prefix: string
}

export function makeReadModel(
  client: RedisClient,
  bulk = client,
  prefix = `test-${randomUUID()}.`,
): RedisHarness {
  const views = readModel(redisViewStore({ client, bulk, prefix, partitions: PARTITIONS }))
  return {
    prefix,
    ...views,
    async close() {
      for (const key of await keysUnder(client, prefix)) await client.unlink(key)
    },
  }
}

/** Every key with the prefix, on every master. */
export async function keysUnder(client: RedisClient, prefix: string): Promise<string[]> {
  const keys = new Set<string>()
  for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
    let cursor = '0'
    do {
      const [next, some] = await node.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1_000)
      for (const key of some) keys.add(key)
      cursor = next
    } while (cursor !== '0')
  }
  return [...keys]
}
