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
