import * as kind from './setting.js'

/** The log of the distributed engine. */
export const KAFKA_SETTINGS = {
  kafkaBrokers: kind.optionalList(
    'KAFKA_BROKERS',
    'Brokers to connect to first, host:port, separated by commas. If set, Mayfly uses the distributed engine.',
    /^(\[[0-9a-f:.]+\]|[^\s,:/]+):\d{1,5}$/i,
    'must be host:port, or several with commas',
  ),
  kafkaPartitions: kind.wholeNumber(
    'KAFKA_PARTITIONS',
    { least: 1, most: 1_000 },
    {
      default: 24,
      help: 'Partitions of inbox-events when it is created. A start with another number is refused later.',
    },
  ),
  kafkaReplication: kind.wholeNumber(
    'KAFKA_REPLICATION',
    { least: 1, most: 10 },
    {
      default: 3,
      help: 'Replicas of each topic when it is created. With 3 or more, 2 must have a record before it counts as written.',
    },
  ),
  kafkaSaslMechanism: kind.optionalOneOf(
    'KAFKA_SASL_MECHANISM',
    ['plain', 'scram-sha-256', 'scram-sha-512'],
    'How to log in to the brokers: plain, scram-sha-256 or scram-sha-512. If unset, Mayfly does not log in.',
  ),
  kafkaSaslUsername: kind.optionalText('KAFKA_SASL_USERNAME', 'User for SASL.'),
  kafkaSaslPassword: kind.optionalText('KAFKA_SASL_PASSWORD', 'Password for SASL.'),
  kafkaTls: kind.yesOrNo('KAFKA_TLS', {
    default: false,
    help: 'Whether the brokers are reached over TLS.',
  }),
  kafkaTlsCa: kind.optionalText(
    'KAFKA_TLS_CA',
    "PEM file of the authority that signed the brokers' certificates; the system's authorities if unset.",
  ),
  kafkaTlsCert: kind.optionalText('KAFKA_TLS_CERT', 'PEM file of the client certificate.'),
  kafkaTlsKey: kind.optionalText(
    'KAFKA_TLS_KEY',
    'PEM file of the key that belongs to the client certificate.',
  ),
  topicPrefix: kind.matching(
    'MAYFLY_TOPIC_PREFIX',
    /^[a-zA-Z0-9._-]{1,100}$/,
    'must be 1 to 100 of letters, digits, dot, underscore and hyphen',
    {
      default: 'mayfly.',
      help: 'Prefix of the names of Kafka topics and consumer groups, and of Redis keys.',
    },
  ),
} as const

/** The views of the distributed engine. */
export const REDIS_SETTINGS = {
  redisUrls: kind.optionalList(
    'REDIS_URL',
    'Redis of the distributed engine: redis:// or rediss://; several, separated by commas, are nodes of one Cluster.',
    /^rediss?:\/\/[^\s,]+$/i,
    'must be a redis:// or rediss:// URL, or several with commas',
  ),
  redisTlsCa: kind.optionalText(
    'REDIS_TLS_CA',
    "PEM file of the authority that signed Redis's certificate; the system's authorities if unset. For rediss://.",
  ),
  redisTlsCert: kind.optionalText('REDIS_TLS_CERT', 'PEM file of the client certificate for Redis.'),
  redisTlsKey: kind.optionalText(
    'REDIS_TLS_KEY',
    'PEM file of the key that belongs to the client certificate for Redis.',
  ),
} as const

/** Usage analytics of the distributed engine. */
export const CLICKHOUSE_SETTINGS = {
  clickhouseUrl: kind.optionalUrl(
    'CLICKHOUSE_URL',
    'ClickHouse of the distributed engine: http:// or https:// URL of its HTTP interface, without user and password.',
    (url) => url.username === '' && url.password === '' && url.search === '' && url.hash === '',
    'must be an http or https URL without user, password, query and fragment; CLICKHOUSE_USERNAME and ' +
      'CLICKHOUSE_PASSWORD are for the first two',
  ),
  clickhouseDatabase: kind.matching(
    'CLICKHOUSE_DATABASE',
    /^[a-z_][a-z0-9_]{0,62}$/,
    'must be 1 to 63 of lower-case letters, digits and underscore, no digit first',
    { default: 'mayfly', help: 'Database of ClickHouse.' },
  ),
  clickhouseUsername: kind.text('CLICKHOUSE_USERNAME', { default: 'default', help: 'User of ClickHouse.' }),
  clickhousePassword: kind.optionalText(
    'CLICKHOUSE_PASSWORD',
    "Password of ClickHouse's user; none if unset.",
  ),
  clickhouseTlsCa: kind.optionalText(
    'CLICKHOUSE_TLS_CA',
    "PEM file of the authority that signed ClickHouse's certificate; the system's authorities if unset. For https://.",
  ),
} as const
