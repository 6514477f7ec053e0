import * as kind from './setting.js'

/** The log of the distributed engine. */
export const KAFKA_SETTINGS = {
  kafkaBrokers: kind.optionalList(
    'KAFKA_BROKERS',
    'Brokers to begin with, host:port with commas between. Set, it chooses the distributed engine.',
    /^(\[[0-9a-f:.]+\]|[^\s,:/]+):\d{1,5}$/i,
    'must be host:port, or several with commas',
  ),
  kafkaPartitions: kind.wholeNumber(
    'KAFKA_PARTITIONS',
    { least: 1, most: 1_000 },
    {
      default: 24,
      help: 'Partitions of inbox-events, at its creation; another number afterwards is refused at start.',
    },
  ),
  kafkaReplication: kind.wholeNumber(
    'KAFKA_REPLICATION',
    { least: 1, most: 10 },
    { default: 3, help: 'Replicas of each topic, at its creation; with 3 or more, 2 must have each record.' },
  ),
  kafkaSaslMechanism: kind.optionalOneOf(
    'KAFKA_SASL_MECHANISM',
    ['plain', 'scram-sha-256', 'scram-sha-512'],
    'How to log in to the brokers; not at all where unset.',
  ),
  kafkaSaslUsername: kind.optionalText('KAFKA_SASL_USERNAME', 'User for SASL.'),
  kafkaSaslPassword: kind.optionalText('KAFKA_SASL_PASSWORD', 'Password for SASL.'),
  kafkaTls: kind.yesOrNo('KAFKA_TLS', {
    default: false,
    help: 'Whether the brokers are reached over TLS.',
  }),
  kafkaTlsCa: kind.optionalText(
    'KAFKA_TLS_CA',
    "PEM file of the authority that signed the brokers' certificates; the system's where unset.",
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
      help: 'Begins the name of every Kafka topic and consumer group, and every Redis key.',
    },
  ),
} as const
