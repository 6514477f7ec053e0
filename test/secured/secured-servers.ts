import kafkajs, { type AclEntry, type Admin } from 'kafkajs'
import { Redis } from 'ioredis'
import { freePort, LOOPBACK } from '#infra/servers/ports.js'
import { Authority, type CertificateFiles } from '#test/harness/certificates.js'
import { startClickHouse, type ClickHouseServer } from '#test/harness/clickhouse.js'
import { startKafka, type KafkaCluster } from '#test/harness/kafka.js'
import { startRedis } from '#test/harness/redis.js'

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, Kafka, logLevel, ResourcePatternTypes } =
  kafkajs

export const USER = 'mayfly'
/** Prefix of the topics, groups and Redis keys that the user may access. */
export const PREFIX = 'mayfly.'
export const KAFKA_PASSWORD = 'kafka-only-secret-2718'
export const REDIS_PASSWORD = 'redis-only-secret-3141'
export const CLICKHOUSE_PASSWORD = 'clickhouse-only-secret-1414'

/** The rights that docs/distributed.md lists, on topics and groups with the prefix. */
export const TOPIC_RIGHTS = ['READ', 'WRITE', 'CREATE', 'DESCRIBE_CONFIGS', 'ALTER_CONFIGS'] as const
export const GROUP_RIGHTS = ['READ'] as const
export const REDIS_RIGHTS =
  `~${PREFIX}* &${PREFIX}* -@all +info +client|setname +eval +evalsha +publish ` +
  '+subscribe +unsubscribe +get +set +unlink +exists +hget +hmget +hset +hdel +hlen +hscan +zadd +zrem +zrange ' +
  '+zscore +zcard +time +incrby +pttl +pexpire'

/**
 * A Kafka, a Redis and a ClickHouse that require credentials. In Kafka and Redis, the user has only the rights that
 * Mayfly needs.
 */
export class SecuredServers {
  private constructor(
    readonly authority: Authority,
    /** The client's certificate. */
    readonly client: CertificateFiles,
    readonly kafka: KafkaCluster,
    /** A rediss: URL of the port on which Redis does not use TLS. */
    readonly openRedisUrl: string,
    private readonly redisTlsPort: number,
    private readonly redisAdmin: Redis,
    readonly clickhouse: ClickHouseServer,
    private readonly started: AsyncDisposableStack,
  ) {}

  static async start(): Promise<SecuredServers> {
    const started = new AsyncDisposableStack()
    try {
      const authority = await Authority.make()
      started.defer(() => authority.dispose())
      const client = await authority.issue(USER)
      // Not valid for localhost, so that a client with that name finds the wrong certificate.
      const server = await authority.issue('server', { hosts: [LOOPBACK] })
      const redisTlsPort = await freePort()
      const redis = await startRedis({
        settings: {
          'tls-port': redisTlsPort,
          'tls-cert-file': server.cert,
          'tls-key-file': server.key,
          'tls-ca-cert-file': authority.certFile,
          'tls-auth-clients': 'optional',
        },
      })
      started.defer(() => redis.dispose())
      const kafka = await startKafka({
        heapMib: 320,
        secured: {
          users: { [USER]: KAFKA_PASSWORD },
          tls: { keyStore: server.both, trustStore: authority.certFile },
          // kafkajs reauthenticates ten seconds before the session ends.
          sessionMs: 11_000,
        },
      })
      started.defer(() => kafka.dispose())
      const redisAdmin = new Redis(redis.url)
      started.defer(() => redisAdmin.disconnect())
      const open = redis.url.replace('redis:', 'rediss:')
      const clickhouse = await startClickHouse({
        access: { user: USER, password: CLICKHOUSE_PASSWORD },
        tls: server,
      })
      started.defer(() => clickhouse.dispose())
      const servers = new SecuredServers(
        authority,
        client,
        kafka,
        open,
        redisTlsPort,
        redisAdmin,
        clickhouse,
        started,
      )
      await servers.allowInKafka(...rights())
      await servers.allowInRedis()
      return servers
    } catch (error) {
      await started.disposeAsync()
      throw error
    }
  }

  /** The URL of Redis's TLS port for the user. */
  redisUrl(password = REDIS_PASSWORD, host = LOOPBACK): string {
    return `rediss://${USER}:${password}@${host}:${this.redisTlsPort}`
  }

  /** The settings of Mayfly. */
  settings(): Record<string, string> {
    return {
      KAFKA_BROKERS: this.kafka.secured.saslTls,
      KAFKA_SASL_MECHANISM: 'scram-sha-512',
      KAFKA_SASL_USERNAME: USER,
      KAFKA_SASL_PASSWORD: KAFKA_PASSWORD,
      KAFKA_TLS: 'true',
      KAFKA_TLS_CA: this.authority.certFile,
      REDIS_URL: this.redisUrl(),
      REDIS_TLS_CA: this.authority.certFile,
      CLICKHOUSE_URL: this.clickhouse.url,
      CLICKHOUSE_USERNAME: USER,
      CLICKHOUSE_PASSWORD,
      CLICKHOUSE_TLS_CA: this.authority.certFile,
      MAYFLY_TOPIC_PREFIX: PREFIX,
    }
  }

  async allowInKafka(...acl: AclEntry[]): Promise<void> {
    await this.administer((admin) => admin.createAcls({ acl }))
  }

  /** Creates or restores the user with its rights. */
  async allowInRedis(): Promise<void> {
    await this.redisAdmin.call('ACL', [
      'SETUSER',
      USER,
      'on',
      `>${REDIS_PASSWORD}`,
      ...REDIS_RIGHTS.split(' '),
    ])
  }

  /** Removes the user, which closes its connections. */
  async forbidInRedis(): Promise<void> {
    await this.redisAdmin.call('ACL', ['DELUSER', USER])
  }

  /** Commands that Redis has denied to authenticated users, newest first. */
  async refusedByRedis(): Promise<unknown[]> {
    const refusals = (await this.redisAdmin.call('ACL', ['LOG'])) as unknown[][]
    return refusals.filter((refusal) => !refusal.includes('auth'))
  }

  async administer<Result>(work: (admin: Admin) => Promise<Result>): Promise<Result> {
    const admin = new Kafka({ brokers: this.kafka.brokers, logLevel: logLevel.NOTHING }).admin()
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      await admin.disconnect()
    }
  }

  dispose(): Promise<void> {
    return this.started.disposeAsync()
  }
}

export function topicRight(operation: (typeof TOPIC_RIGHTS)[number], prefix = PREFIX): AclEntry {
  return right(AclResourceTypes.TOPIC, prefix, AclOperationTypes[operation])
}

function rights(): AclEntry[] {
  const onGroups = GROUP_RIGHTS.map((each) => right(AclResourceTypes.GROUP, PREFIX, AclOperationTypes[each]))
  return [...TOPIC_RIGHTS.map((each) => topicRight(each)), ...onGroups]
}

function right(
  resourceType: AclEntry['resourceType'],
  resourceName: string,
  operation: AclEntry['operation'],
): AclEntry {
  return {
    resourceType,
    resourceName,
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal: `User:${USER}`,
    host: '*',
    operation,
    permissionType: AclPermissionTypes.ALLOW,
  }
}
