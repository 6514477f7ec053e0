import * as kind from './setting.js'

/** Settings of the distributed engine: Kafka for the log, Redis for the views, ClickHouse for usage. */
export const DISTRIBUTED_SETTINGS = kind.named('', {
  // The log.
  kafkaBrokers: kind.list(
    'Brokers to connect to first, host:port, separated by commas. If set, Mayfly uses the distributed engine.',
    {
      accepts: /^(\[[0-9a-f:.]+\]|[^\s,:/]+):\d{1,5}$/i,
      expectation: 'must be host:port, or several separated by commas',
    },
  ),
  kafkaPartitions: kind.wholeNumber(
    'Partitions of inbox-events when it is created. A start with another number is refused later.',
    { default: 24, min: 1, max: 1_000 },
  ),
  kafkaReplication: kind.wholeNumber(
    'Replicas of each topic when it is created. With 3 or more, 2 must have a record before it counts as written.',
    { default: 3, min: 1, max: 10 },
  ),
  kafkaSaslMechanism: kind.oneOf(
    'How to log in to the brokers: plain, scram-sha-256 or scram-sha-512. If unset, Mayfly does not log in.',
    { choices: ['plain', 'scram-sha-256', 'scram-sha-512'] },
  ),
  kafkaSaslUsername: kind.text('User for SASL.'),
  kafkaSaslPassword: kind.text('Password for SASL.'),
  kafkaTls: kind.yesOrNo('Whether the brokers are reached over TLS.', { default: false }),
  kafkaTlsCa: kind.text(
    "PEM file of the authority that signed the brokers' certificates; the system's authorities if unset.",
  ),
  kafkaTlsCert: kind.text('PEM file of the client certificate.'),
  kafkaTlsKey: kind.text('PEM file of the key that belongs to the client certificate.'),
  topicPrefix: {
    variable: 'MAYFLY_TOPIC_PREFIX',
    ...kind.text('Prefix of the names of Kafka topics and consumer groups, and of Redis keys.', {
      default: 'mayfly.',
      accepts: /^[a-zA-Z0-9._-]{1,100}$/,
      expectation: 'must be 1 to 100 letters, digits, dots, underscores or hyphens',
    }),
  },

  // The views.
  redisUrls: {
    variable: 'REDIS_URL',
    ...kind.list(
      'Redis of the distributed engine: redis:// or rediss://; several, separated by commas, are nodes of one Cluster.',
      {
        accepts: /^rediss?:\/\/[^\s,]+$/i,
        expectation: 'must be a redis:// or rediss:// URL, or several separated by commas',
      },
    ),
  },
  redisTlsCa: kind.text(
    "PEM file of the authority that signed Redis's certificate; the system's authorities if unset. For rediss://.",
  ),
  redisTlsCert: kind.text('PEM file of the client certificate for Redis.'),
  redisTlsKey: kind.text('PEM file of the key that belongs to the client certificate for Redis.'),

  // Usage.
  clickhouseUrl: kind.url(
    'ClickHouse of the distributed engine: http:// or https:// URL of its HTTP interface, without user and password.',
    {
      accepts: (url) => url.username === '' && url.password === '' && url.search === '' && url.hash === '',
      expectation:
        'must be an http or https URL without user, password, query and fragment; set CLICKHOUSE_USERNAME and ' +
        'CLICKHOUSE_PASSWORD instead',
    },
  ),
  clickhouseDatabase: kind.text('Database of ClickHouse.', {
    default: 'mayfly',
    accepts: /^[a-z_][a-z0-9_]{0,62}$/,
    expectation: 'must be 1 to 63 lower-case letters, digits and underscores, not starting with a digit',
  }),
  clickhouseUsername: kind.text('User of ClickHouse.', { default: 'default' }),
  clickhousePassword: kind.text("Password of ClickHouse's user; none if unset."),
  clickhouseTlsCa: kind.text(
    "PEM file of the authority that signed ClickHouse's certificate; the system's authorities if unset. For https://.",
  ),
})
