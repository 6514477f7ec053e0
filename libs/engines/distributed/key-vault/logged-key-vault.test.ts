import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import { logOptions, removeTopics } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { redisKeyView } from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'
import { openLmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import { describeOn, redisUrl } from '#test/harness/servers.js'
import { describeKeyVault } from '#libs/ports/key-vault/key-vault.contract.js'
import { VaultHarness, type VaultStores } from './logged-key-vault-harness.contract.js'
import { describeLoggedKeyVault } from './logged-key-vault.contract.js'

type LogStore = Pick<VaultStores, 'log' | 'reopenLog' | 'close'>

async function storeOf(
  open: () => Promise<VaultStores['log']>,
  remove: () => Promise<void>,
): Promise<LogStore> {
  const store = {
    log: await open(),
    async reopenLog() {
      await store.log.close()
      return open()
    },
    async close() {
      await store.log.close()
      await remove()
    },
  }
  return store
}

async function lmdbStore(): Promise<LogStore> {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-keys-'))
  const options = {
    path: join(dir, 'log.mdb'),
    partitions: PARTITIONS,
    retentionMs: () => null,
    now: () => new Date(),
    onPruneError: () => undefined,
  }
  return storeOf(
    () => openLmdbEventLog(options),
    () => rm(dir, { recursive: true }),
  )
}

function kafkaStore(): Promise<LogStore> {
  const options = logOptions()
  return storeOf(
    () => openKafkaEventLog(options),
    () => removeTopics(options.topicPrefix),
  )
}

function withRedisView(client: RedisClient, store: LogStore): VaultStores {
  const keysUnder = (prefix: string) => client.keys(`${prefix}*`)
  return Object.assign(store, {
    viewUnder: (prefix: string) => redisKeyView({ client, prefix }),
    async flushView(prefix: string) {
      for (const key of await keysUnder(prefix)) await client.unlink(key)
    },
    async copyView(prefix: string) {
      const copies = await Promise.all(
        (await keysUnder(prefix)).map(async (key) => ({ key, copy: await client.dumpBuffer(key) })),
      )
      return async () => {
        for (const key of await keysUnder(prefix)) await client.unlink(key)
        for (const { key, copy } of copies) await client.restore(key, 0, copy)
      }
    },
  })
}

describe.each([
  { name: 'LMDB', servers: ['redis'] as const, makeStore: lmdbStore },
  { name: 'Kafka', servers: ['kafka', 'redis'] as const, makeStore: kafkaStore },
])('$name', ({ name, servers, makeStore }) => {
  describeOn(...servers)('keeps inbox keys', () => {
    let client: RedisClient

    beforeAll(async () => {
      client = await openRedis({ urls: [redisUrl()], name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())

    const make = async () => VaultHarness.make(withRedisView(client, await makeStore()))
    describeKeyVault(`the log on ${name}`, make)
    describeLoggedKeyVault(`the log on ${name}`, make)
  })
})
