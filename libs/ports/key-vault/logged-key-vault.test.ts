import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PARTITIONS } from '#libs/ports/event-log/event-log-harness.contract.js'
import { KafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import { logOptions, removeTopics } from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { LmdbEventLog } from '#libs/engines/embedded/event-log/lmdb-event-log.js'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { describeOn, redisUrl } from '#test/harness/servers.js'
import { describeKeyVault } from './key-vault.contract.js'
import { VaultHarness, type Ground } from './logged-key-vault-harness.contract.js'
import { describeLoggedKeyVault } from './logged-key-vault.contract.js'
import { RedisKeyView } from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'

type LogGround = Pick<Ground, 'log' | 'reopenLog' | 'close'>

async function groundOn(open: () => Promise<Ground['log']>, remove: () => Promise<void>): Promise<LogGround> {
  const ground = {
    log: await open(),
    async reopenLog() {
      await ground.log.close()
      return open()
    },
    async close() {
      await ground.log.close()
      await remove()
    },
  }
  return ground
}

async function lmdbGround(): Promise<LogGround> {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-keys-'))
  const options = {
    path: join(dir, 'log.mdb'),
    partitions: PARTITIONS,
    retentionMs: () => null,
    now: () => new Date(),
    onPruneError: () => undefined,
  }
  return groundOn(
    () => LmdbEventLog.open(options),
    () => rm(dir, { recursive: true }),
  )
}

function kafkaGround(): Promise<LogGround> {
  const options = logOptions()
  return groundOn(
    () => KafkaEventLog.open(options),
    () => removeTopics(options.topicPrefix),
  )
}

function inRedis(client: RedisClient, ground: LogGround): Ground {
  const keysUnder = (prefix: string) => client.keys(`${prefix}*`)
  return Object.assign(ground, {
    viewUnder: (prefix: string) => new RedisKeyView({ client, prefix }),
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
  { name: 'LMDB', servers: ['redis'] as const, makeGround: lmdbGround },
  { name: 'Kafka', servers: ['kafka', 'redis'] as const, makeGround: kafkaGround },
])('$name', ({ name, servers, makeGround }) => {
  describeOn(...servers)('keeps inbox keys', () => {
    let client: RedisClient

    beforeAll(async () => {
      client = await openRedis({ urls: [redisUrl()], name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())

    const make = async () => VaultHarness.make(inRedis(client, await makeGround()))
    describeKeyVault(`the log on ${name}`, make)
    describeLoggedKeyVault(`the log on ${name}`, make)
  })
})
