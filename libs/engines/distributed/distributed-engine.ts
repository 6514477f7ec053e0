import { serverUsage } from '#libs/engines/clickhouse/clickhouse-usage.js'
import { openKafkaEventLog } from '#libs/engines/distributed/kafka/kafka-event-log.js'
import type { KafkaEventLogOptions } from '#libs/engines/distributed/kafka/open-log.js'
import { checkRedis, watchJoining } from '#libs/engines/distributed/redis/client/check-redis.js'
import { onInterruption, openRedis } from '#libs/engines/distributed/redis/client/redis-client.js'
import { redisIdempotencyStore } from '#libs/engines/distributed/redis/idempotency/redis-idempotency-store.js'
import { redisKeyUseStore } from '#libs/engines/distributed/redis/key-use/redis-key-use-store.js'
import { redisKeyView } from '#libs/engines/distributed/redis/key-vault/redis-key-view.js'
import { redisRateLimits } from '#libs/engines/distributed/redis/rate-limit/redis-rate-limits.js'
import { redisViewStore } from '#libs/engines/distributed/redis/read-model/redis-view-store.js'
import { openRedisSignals } from '#libs/engines/distributed/redis/signals/redis-signals.js'
import { type Engine, type EngineOptions, retentionMs } from '#libs/engines/engine.js'
import { KeyUse } from '#libs/ports/key-use/key-use.js'
import {
  HEARTBEAT_EVERY_MS,
  openLoggedKeyVault,
} from '#libs/engines/distributed/key-vault/logged-key-vault.js'
import { MasterKeys } from '#libs/ports/key-vault/master-key.js'
import { readModel } from '#libs/ports/read-model/queries.js'
import { rememberProgress } from '#libs/ports/read-model/remembered-progress.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import type { Settings } from '#libs/runtime/config/settings.js'
import { messageOf, StartError } from '#libs/runtime/errors.js'
import { readPemFiles } from '#libs/runtime/tls/pem-files.js'

type PemSetting = Extract<keyof Settings, `${string}Tls${'Ca' | 'Cert' | 'Key'}`>
const NO_FILE = { variable: '', path: null }

/** Opens every port on Kafka, Redis and ClickHouse, which many processes share. Rejects with StartError on failure. */
export async function openDistributedEngine(options: EngineOptions): Promise<Engine> {
  const { settings, role, now, onError } = options
  const { topicPrefix: prefix, kafkaPartitions: partitions } = settings
  // Closes everything in reverse order, even if closing one of them fails.
  const opened = new AsyncDisposableStack()
  const close = () => opened.disposeAsync()
  try {
    const masterKeys = MasterKeys.parse(settings.masterKey ?? '')
    if (masterKeys === null) throw new StartError('the master key is not 32 bytes in base64')
    const pem = (name: PemSetting) => ({ variable: SETTINGS[name].variable, path: settings[name] })
    const [kafkaTls, redisTls, clickhouseTls] = await Promise.all([
      readPemFiles({ ca: pem('kafkaTlsCa'), cert: pem('kafkaTlsCert'), key: pem('kafkaTlsKey') }),
      readPemFiles({ ca: pem('redisTlsCa'), cert: pem('redisTlsCert'), key: pem('redisTlsKey') }),
      readPemFiles({ ca: pem('clickhouseTlsCa'), cert: NO_FILE, key: NO_FILE }),
    ])
    const redis = {
      urls: settings.redisUrls ?? [],
      tls: redisTls,
      name: `mayfly-${role}`,
      onError: (error: unknown) => onError(error, 'connecting to Redis'),
    }
    const client = await openRedis(redis)
    opened.defer(() => client.disconnect())
    const bulk = await openRedis({ ...redis, name: `mayfly-${role}-bulk`, isForBulk: true })
    opened.defer(() => bulk.disconnect())
    await checkRedis(client)
    watchJoining(client, (error) => onError(error, 'checking a node that joined the Redis Cluster'))
    const log = await openKafkaEventLog({
      brokers: settings.kafkaBrokers ?? [],
      clientId: `mayfly-${role}`,
      topicPrefix: prefix,
      partitions,
      replication: settings.kafkaReplication,
      sasl: saslOf(settings),
      tls: settings.kafkaTls ? kafkaTls : null,
      maxMessageBytes: settings.maxMessageBytes,
      retentionMs,
      onError,
    })
    opened.defer(() => log.close())
    const vault = await openLoggedKeyVault({
      log,
      view: redisKeyView({ client, prefix }),
      masterKeys,
      now,
      onError,
      // At least one process of a deployment must append heartbeats.
      ...(role === 'lifecycle' || role === 'standalone' ? { heartbeatEveryMs: HEARTBEAT_EVERY_MS } : {}),
    })
    opened.defer(() => vault.close())
    const { store, queries, ...views } = readModel(redisViewStore({ client, bulk, prefix, partitions }))
    const { progress, invalidate } = rememberProgress(queries, log)
    onInterruption(client, invalidate)
    const signals = await openRedisSignals({
      client,
      prefix,
      onError: (error) => onError(error, 'publishing signals'),
    })
    opened.defer(() => signals.close())
    const keyUse = new KeyUse(redisKeyUseStore(client, prefix), (error) =>
      onError(error, 'storing the times of key use'),
    )
    opened.defer(() => keyUse.close())
    const usage = settings.countsUsage
      ? serverUsage({
          url: settings.clickhouseUrl ?? '',
          database: settings.clickhouseDatabase,
          username: settings.clickhouseUsername,
          password: settings.clickhousePassword ?? '',
          ca: clickhouseTls.ca,
        })
      : null
    opened.defer(() => usage?.close())
    return {
      log,
      vault,
      secrets: masterKeys,
      projections: store,
      inboxes: { ...queries, progress },
      ...views,
      keyUse,
      signals,
      limits: redisRateLimits({ client, prefix }),
      idempotency: redisIdempotencyStore({ client, prefix, now }),
      usage,
      disk: null,
      close,
    }
  } catch (cause) {
    await close().catch((failure: unknown) => onError(failure, 'closing'))
    if (cause instanceof StartError) throw cause
    throw new StartError(messageOf(cause), { cause })
  }
}

function saslOf(settings: Settings): KafkaEventLogOptions['sasl'] {
  const { kafkaSaslMechanism: mechanism, kafkaSaslUsername, kafkaSaslPassword } = settings
  if (mechanism === null) return null
  return { mechanism, username: kafkaSaslUsername ?? '', password: kafkaSaslPassword ?? '' }
}
