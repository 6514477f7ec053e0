import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigResourceTypes } from 'kafkajs'
import type { KeyVault } from '#libs/ports/key-vault/key-vault.js'
import { openLoggedKeyVault } from '#libs/engines/distributed/key-vault/logged-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { redisKeyView } from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'
import { makeSecretKey } from '#libs/ports/key-vault/sealing.js'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import {
  asAdmin,
  logOptions,
  removeTopics,
} from '#libs/engines/distributed/kafka/kafka-log-harness.contract.js'
import { openRedis } from '#libs/engines/distributed/redis/client/redis-client.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { InboxId } from '#libs/domain/ids/typeid.js'
import { describeOn, kafkaDataDir, redisUrl } from '#test/harness/servers.js'
import { MUST_RUN_ALL } from '#test/harness/tools.js'
import { until } from '#test/harness/until.js'

const PARTITIONS = 2
/** The settings of the topic, but seconds instead of minutes. */
const QUICKLY = { 'segment.ms': '500', 'max.compaction.lag.ms': '500', 'file.delete.delay.ms': '100' }
/** Brokers look for logs to compact every 15 s. */
const GONE_WITHIN_MS = 90_000

const topicPrefix = `test-${randomUUID()}.`
const topic = `${topicPrefix}inbox-keys`
const closing = new AsyncDisposableStack()

async function openVault(): Promise<KeyVault> {
  const options = logOptions({ topicPrefix, partitions: PARTITIONS })
  closing.defer(() => removeTopics(topicPrefix))
  const log = await openKafkaEventLog(options)
  closing.defer(() => log.close())
  const configEntries = Object.entries({
    ...QUICKLY,
    'cleanup.policy': 'compact',
    'min.cleanable.dirty.ratio': '0.01',
  }).map(([name, value]) => ({ name, value }))
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }]
  await asAdmin((admin) => admin.alterConfigs({ validateOnly: false, resources }))
  const client = await openRedis({ urls: [redisUrl()], name: 'mayfly-test', onError: () => undefined })
  closing.defer(() => client.disconnect())
  closing.defer(async () => {
    for (const key of await client.keys(`${topicPrefix}*`)) await client.unlink(key)
  })
  const masterKeys = MasterKeys.parse(makeSecretKey().toString('base64'))
  if (masterKeys === null) throw new Error('invalid master key')
  const vault = await openLoggedKeyVault({
    log,
    view: redisKeyView({ client, prefix: topicPrefix }),
    masterKeys,
    now: () => new Date(),
    onError: () => undefined,
    heartbeatEveryMs: 250,
  })
  closing.defer(() => vault.close())
  return vault
}

/** All bytes of the topic on the broker's disk, including files that it is about to remove. */
function onDisk(): Promise<string> {
  // If the broker renamed or removed a file meanwhile, something may have been missed.
  return until('a look at files that stay', () => readAll().catch(nullIfGone))
}

async function readAll(): Promise<string> {
  const dataDir = kafkaDataDir() ?? ''
  const texts: string[] = []
  for (const folder of await readdir(dataDir)) {
    if (!folder.startsWith(`${topic}-`)) continue
    for (const file of await readdir(join(dataDir, folder))) {
      texts.push(await readFile(join(dataDir, folder, file), 'latin1'))
    }
  }
  return texts.join('\n')
}

function nullIfGone(error: unknown): null {
  if (typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT') return null
  throw error
}

/** The wrapped key of an inbox on the log. */
function wrappedIn(disk: string, inboxId: InboxId): string {
  const found = new RegExp(`"inbox_id":"${inboxId}"[^}]*"wrapped":"([^"]+)"`).exec(disk)?.[1]
  if (found === undefined) throw new Error(`the key of ${inboxId} is not on the disk`)
  return found
}

const describeOnDisk =
  MUST_RUN_ALL || kafkaDataDir() !== null ? describeOn('kafka', 'redis', 'clickhouse') : describe.skip

describeOnDisk('a deleted key', () => {
  afterEach(() => closing.disposeAsync())

  it(
    'disappears from the disks of the brokers, and other keys stay',
    async () => {
      const vault = await openVault()
      const ids = Array.from({ length: 20 }, () => mintId('inb'))
      await Promise.all(ids.map((inboxId) => vault.create(inboxId)))
      const before = await onDisk()
      const forgotten = ids.slice(0, 10).map((inboxId) => wrappedIn(before, inboxId))
      const kept = ids.slice(10).map((inboxId) => wrappedIn(before, inboxId))
      await vault.forget(ids.slice(0, 10))
      await until(
        'forgotten keys to leave the disk',
        async () => {
          const disk = await onDisk()
          return forgotten.every((wrapped) => !disk.includes(wrapped))
        },
        GONE_WITHIN_MS,
      )
      const after = await onDisk()
      expect(kept.filter((wrapped) => !after.includes(wrapped))).toEqual([])
    },
    GONE_WITHIN_MS + 30_000,
  )
})
