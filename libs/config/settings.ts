import { isIPv4, isIPv6 } from 'node:net'
import { messageOf } from '#libs/fault/message-of.js'
import * as kind from './setting.js'
import type { Setting } from './setting.js'

const MIB = 1024 * 1024

/** Every setting, in the order of the table in docs/operating.md. */
export const SETTINGS = {
  httpHost: kind.text('MAYFLY_HTTP_HOST', { default: '127.0.0.1', help: 'Address the HTTP API listens on.' }),
  httpPort: kind.port('MAYFLY_HTTP_PORT', {
    default: 3000,
    help: 'Port of the HTTP API; 0 takes a free one.',
  }),
  httpMaxConnections: kind.wholeNumber(
    'MAYFLY_HTTP_MAX_CONNECTIONS',
    { least: 1, most: 1_000_000 },
    { default: 10_000, help: 'HTTP connections at once; those beyond are closed unanswered.' },
  ),
  httpRequestTimeoutMs: kind.wholeNumber(
    'MAYFLY_HTTP_REQUEST_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 60_000,
      help: 'Longest time for a request to come in, in milliseconds; its headers have 15 s of it at most.',
    },
  ),
  corsOrigins: kind.optionalList(
    'MAYFLY_CORS_ORIGINS',
    'Origins whose pages may use the API from a browser, https://app.example, with commas between, or * for any; ' +
      'none where unset.',
    /^(\*|https?:\/\/[^\s,/?#@]+)$/i,
    'must be origins such as https://app.example, without a path, with commas between, or *',
  ),
  smtpHost: kind.text('MAYFLY_SMTP_HOST', {
    default: '127.0.0.1',
    help: 'Address the SMTP edge listens on.',
  }),
  smtpPort: kind.port('MAYFLY_SMTP_PORT', {
    default: 2525,
    help: 'Port of the SMTP edge; 0 takes a free one.',
  }),
  metricsPort: kind.optionalPort(
    'MAYFLY_METRICS_PORT',
    'Serves /metrics on a port of its own instead of on the HTTP API.',
  ),
  publicUrl: kind.optionalUrl(
    'MAYFLY_PUBLIC_URL',
    'Base of links in problems and docs; the HTTP address where unset.',
  ),
  mailDomain: kind.matching(
    'MAYFLY_MAIL_DOMAIN',
    /^(?=.{1,200}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i,
    'must be a domain name',
    { default: 'mayfly.test', help: 'Domain of generated addresses.' },
  ),
  dataDir: kind.text('MAYFLY_DATA_DIR', {
    default: './data',
    help: "Folder of the embedded engine's files.",
  }),
  masterKey: kind.optionalText(
    'MAYFLY_MASTER_KEY',
    'Wraps inbox keys: 32 bytes in base64, or several with commas, the current one first. ' +
      'Made at first start and kept in the data folder where unset.',
    (value) => /^[A-Za-z0-9+/]{43}=(\s*,\s*[A-Za-z0-9+/]{43}=)*$/.test(value),
    'must be 32 bytes in base64, or several with commas',
  ),
  bootstrapApiKey: kind.optionalText(
    'MAYFLY_BOOTSTRAP_API_KEY',
    'First API key, with every scope, for the environment development: 20 to 200 visible ASCII characters. ' +
      'Made and printed once at first start where unset. A later start with another one adds it; the one before goes on ' +
      'until it is revoked.',
    (value) => /^[\x21-\x7e]{20,200}$/.test(value),
    'must be 20 to 200 visible ASCII characters',
  ),
  plansFile: kind.optionalText(
    'MAYFLY_PLANS',
    'JSON file of the plans that accounts may have; free, starter, pro and enterprise where unset.',
  ),
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
  redisUrls: kind.optionalList(
    'REDIS_URL',
    'Redis of the distributed engine: redis:// or rediss://; several with commas are nodes of one Cluster.',
    /^rediss?:\/\/[^\s,]+$/i,
    'must be a redis:// or rediss:// URL, or several with commas',
  ),
  redisTlsCa: kind.optionalText(
    'REDIS_TLS_CA',
    "PEM file of the authority that signed Redis's certificate; the system's where unset. For rediss://.",
  ),
  redisTlsCert: kind.optionalText('REDIS_TLS_CERT', 'PEM file of the client certificate for Redis.'),
  redisTlsKey: kind.optionalText(
    'REDIS_TLS_KEY',
    'PEM file of the key that belongs to the client certificate for Redis.',
  ),
  maxMessageBytes: kind.wholeNumber(
    'MAYFLY_MAX_MESSAGE_BYTES',
    { least: 1024, most: 256 * MIB },
    { default: 25 * MIB, help: 'Largest mail accepted, in bytes.' },
  ),
  maxBacklog: kind.wholeNumber(
    'MAYFLY_MAX_BACKLOG',
    { least: 1, most: 1_000_000_000 },
    { default: 100_000, help: 'Accepted mails not yet readable past which SMTP answers 451.' },
  ),
  parseThreads: kind.wholeNumber(
    'MAYFLY_PARSE_THREADS',
    { least: 1, most: 64 },
    { default: 2, help: 'Threads that parse mail; as many as cores serve best.' },
  ),
  parseTimeoutMs: kind.wholeNumber(
    'MAYFLY_PARSE_TIMEOUT_MS',
    { least: 100, most: 600_000 },
    { default: 10_000, help: 'Longest time for parsing one mail, in milliseconds, whatever its budget.' },
  ),
  parsePatienceMs: kind.wholeNumber(
    'MAYFLY_PARSE_PATIENCE_MS',
    { least: 100, most: 600_000 },
    {
      default: 500,
      help:
        'The same, beside 40 ms and 40 ms a MiB, for mail of the last minute while more than one account has mail: past ' +
        'it the header alone is read.',
    },
  ),
  parseInboxBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_INBOX_BUDGET_MS',
    { least: 0, most: 60_000 },
    {
      default: 250,
      help:
        'CPU milliseconds that reading the mail which an inbox receives in a minute may take beyond what is ordinary ' +
        '(20 ms a mail and 20 ms a MiB), while more than one account has mail; past it the header alone is read.',
    },
  ),
  parseAccountBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_ACCOUNT_BUDGET_MS',
    { least: 0, most: 600_000 },
    {
      default: 500,
      help: 'The same for all inboxes of an account; past it the header alone is read of mails above 64 KiB.',
    },
  ),
  parseMemoryMib: kind.wholeNumber(
    'MAYFLY_PARSE_MEMORY_MIB',
    { least: 64, most: 16_384 },
    {
      default: 2048,
      help: 'Most heap of one parsing thread, in MiB; below 2048 V8 collects it much more often.',
    },
  ),
  maxStreams: kind.wholeNumber(
    'MAYFLY_MAX_STREAMS',
    { least: 0, most: 1_000_000 },
    { default: 10_000, help: 'Streams of events open at once, past which another one is answered 503.' },
  ),
  streamStallMs: kind.wholeNumber(
    'MAYFLY_STREAM_STALL_MS',
    { least: 1_000, most: 3_600_000 },
    {
      default: 30_000,
      help: 'Time after which a client that takes nothing of its stream is cut off, in milliseconds.',
    },
  ),
  maxWaits: kind.wholeNumber(
    'MAYFLY_MAX_WAITS',
    { least: 1, most: 1_000_000 },
    { default: 10_000, help: 'Requests that wait for a message at once, past which a wait answers 503.' },
  ),
  openedMailBytes: kind.wholeNumber(
    'MAYFLY_OPENED_MAIL_BYTES',
    { least: 0, most: 64 * 1024 * MIB },
    {
      default: 64 * MIB,
      help: 'Memory of the API for mail that was opened in the last minute, so that it need not be opened again; 0 for none.',
    },
  ),
  smtpMaxConnections: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS',
    { least: 1, most: 100_000 },
    { default: 2_000, help: 'SMTP connections at once, in all.' },
  ),
  smtpMaxConnectionsPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS_PER_ADDRESS',
    { least: 1, most: 100_000 },
    {
      default: 500,
      help: 'SMTP connections at once from one remote address; of IPv6 the first 64 bits count, here and below.',
    },
  ),
  smtpMaxConnectionsPerMinute: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_CONNECTIONS_PER_MINUTE',
    { least: 0, most: 10_000_000 },
    { default: 0, help: 'SMTP connections that one remote address may begin in a minute; 0 for any number.' },
  ),
  smtpProxyFrom: kind.optionalList(
    'MAYFLY_SMTP_PROXY_FROM',
    'Balancers, as addresses or networks (10.0.0.7, 10.0.0.0/8, fd00::/8) with commas between, whose connections must ' +
      'begin with a header of the PROXY protocol (version 1 or 2), and are from whom it says; none where unset.',
    isNetwork,
    'must be IP addresses or networks such as 10.0.0.0/8, with commas between',
  ),
  smtpRequireTls: kind.yesOrNo('MAYFLY_SMTP_REQUIRE_TLS', {
    default: false,
    help: 'Whether mail is taken over STARTTLS alone; without, commands are answered 530.',
  }),
  smtpMaxRecipients: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_RECIPIENTS',
    { least: 1, most: 10_000 },
    { default: 1_000, help: 'Recipients of one mail; RFC 5321 asks for at least 100.' },
  ),
  smtpMemoryBytes: kind.wholeNumber(
    'MAYFLY_SMTP_MEMORY_BYTES',
    { least: MIB, most: 1024 * 1024 * MIB },
    { default: 256 * MIB, help: 'Bytes of mail under way held in memory, past which SMTP answers 451.' },
  ),
  smtpMemoryPercentPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MEMORY_PERCENT_PER_ADDRESS',
    { least: 1, most: 100 },
    {
      default: 75,
      help: 'What mail from one remote address may take of that memory, in percent; a largest mail has room in any case.',
    },
  ),
  smtpCommandTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_COMMAND_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    { default: 300_000, help: 'Longest wait for a command or for more of a mail, in milliseconds.' },
  ),
  smtpDataTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_DATA_TIMEOUT_MS',
    { least: 1_000, most: 3_600_000 },
    { default: 600_000, help: 'Longest time for one mail from DATA to its answer, in milliseconds.' },
  ),
  smtpHandshakeTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_HANDSHAKE_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 30_000,
      help: 'Longest time for the TLS handshake of a session, and for the PROXY header of a balancer, in milliseconds.',
    },
  ),
  smtpSessionTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_SESSION_TIMEOUT_MS',
    { least: 1_000, most: 86_400_000 },
    {
      default: 1_800_000,
      help: 'Longest time of a session without an accepted mail, whatever commands come, in milliseconds.',
    },
  ),
  smtpCrowdedTimeoutMs: kind.wholeNumber(
    'MAYFLY_SMTP_CROWDED_TIMEOUT_MS',
    { least: 100, most: 3_600_000 },
    {
      default: 10_000,
      help: 'Longest wait for a command of who has delivered nothing yet, while four fifths of the connections are taken.',
    },
  ),
  smtpMaxErrors: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_ERRORS',
    { least: 1, most: 100_000 },
    {
      default: 20,
      help: 'Faulty commands of a session since its start or last accepted mail; the last one cuts it.',
    },
  ),
  smtpMaxIdleCommands: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_IDLE_COMMANDS',
    { least: 10, most: 1_000_000 },
    {
      default: 1_000,
      help: 'Commands beside new recipients and DATA, counted in the same way, past which a session is cut.',
    },
  ),
  smtpMaxUnknownRecipients: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_UNKNOWN_RECIPIENTS',
    { least: 1, most: 1_000_000 },
    {
      default: 200,
      help: 'Unknown recipients of a session, less the known ones, past which it is cut; past a tenth answers are held back.',
    },
  ),
  smtpMaxUnknownRecipientsPerAddress: kind.wholeNumber(
    'MAYFLY_SMTP_MAX_UNKNOWN_RECIPIENTS_PER_ADDRESS',
    { least: 1, most: 100_000_000 },
    {
      default: 2_000,
      help: 'The same of one remote address in ten minutes, past which each of its sessions has a tenth, held back at once.',
    },
  ),
  smtpUnknownRecipientDelayMs: kind.wholeNumber(
    'MAYFLY_SMTP_UNKNOWN_RECIPIENT_DELAY_MS',
    { least: 0, most: 60_000 },
    {
      default: 2_000,
      help: 'Longest time by which the answer to an unknown recipient is held back; 0 for none.',
    },
  ),
  mailAuthentication: kind.yesOrNo('MAYFLY_MAIL_AUTHENTICATION', {
    default: false,
    help: 'Whether SPF, DKIM, DMARC and ARC of each mail are judged, which asks DNS before the mail is accepted.',
  }),
  dnsServers: kind.optionalList(
    'MAYFLY_DNS_SERVERS',
    'DNS servers for that and for the endpoints of webhooks, 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53, with ' +
      "commas between; the system's where unset.",
    /^(\d{1,3}(\.\d{1,3}){3}(:\d{1,5})?|[0-9a-f:]+|\[[0-9a-f:]+\](:\d{1,5})?)$/i,
    'must be IP addresses, each with :port or without, with commas between',
  ),
  smtpTlsCert: kind.optionalText(
    'MAYFLY_SMTP_TLS_CERT',
    'PEM file of the certificate for STARTTLS; a self-signed one is made at first start where unset.',
  ),
  smtpTlsKey: kind.optionalText(
    'MAYFLY_SMTP_TLS_KEY',
    'PEM file of the key that belongs to the certificate.',
  ),
  webhookAllowPrivate: kind.yesOrNo('MAYFLY_WEBHOOK_ALLOW_PRIVATE', {
    default: false,
    help:
      'Whether webhooks may be sent to any address and port: private ones, loopback and what clouds serve credentials ' +
      'from among them. For one machine or one trusted network.',
  }),
  webhookPorts: kind.portRanges('MAYFLY_WEBHOOK_PORTS', {
    default: '80,443,1024-65535',
    help: 'Ports and ranges of them that webhooks may be sent to.',
  }),
  webhookTimeoutMs: kind.wholeNumber(
    'MAYFLY_WEBHOOK_TIMEOUT_MS',
    { least: 100, most: 60_000 },
    { default: 15_000, help: 'Longest time for one attempt to deliver a webhook, in milliseconds.' },
  ),
  logLevel: kind.oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    help: 'Least level of a log line.',
  }),
} as const

export type Settings = {
  readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name] extends Setting<infer Value>
    ? Value
    : never
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Throws ConfigurationError with every fault at once. */
export function readSettings(environment: Environment): Settings {
  const faults: string[] = []
  const values = Object.entries<Setting<unknown>>(SETTINGS).map(([name, setting]) => {
    const text = environment[setting.variable]
    try {
      return [name, setting.read(text === '' ? undefined : text)] as const
    } catch (error) {
      faults.push(`${setting.variable} ${messageOf(error)}`)
      return [name, null] as const
    }
  })
  const settings = Object.fromEntries(values) as unknown as Settings
  faults.push(...faultsBetween(environment))
  // A slip in a name is often behind a fault elsewhere.
  if (faults.length > 0)
    faults.push(...unknownVariables(environment).map((name) => `${name} is not a setting`))
  if (faults.length > 0) throw new ConfigurationError(faults)
  return settings
}

/** An address, or one with the length of its network's prefix. */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const most = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : null
  if (most === null || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= most)
}

type SettingName = keyof typeof SETTINGS

/** Settings that mean nothing one without the other. */
const PAIRS: readonly (readonly [SettingName, SettingName])[] = [
  ['smtpTlsCert', 'smtpTlsKey'],
  ['kafkaTlsCert', 'kafkaTlsKey'],
  ['redisTlsCert', 'redisTlsKey'],
  ['kafkaSaslMechanism', 'kafkaSaslUsername'],
  ['kafkaSaslUsername', 'kafkaSaslPassword'],
]
/** What the distributed engine, which KAFKA_BROKERS chooses, needs besides: many processes must agree on it. */
const NEEDED_WITH_KAFKA: readonly SettingName[] = ['redisUrls', 'masterKey', 'bootstrapApiKey']

/** What would be ignored where the connection is not over TLS: an operator who sets it thinks that it is. */
const KAFKA_TLS_FILES: readonly SettingName[] = ['kafkaTlsCa', 'kafkaTlsCert', 'kafkaTlsKey']
const REDIS_TLS_FILES: readonly SettingName[] = ['redisTlsCa', 'redisTlsCert', 'redisTlsKey']

function faultsBetween(environment: Environment): string[] {
  const variable = (name: SettingName) => SETTINGS[name].variable
  const isSet = (name: SettingName) => Boolean(environment[variable(name)])
  const faults = PAIRS.filter(([one, other]) => isSet(one) !== isSet(other)).map(
    ([one, other]) => `${variable(one)} and ${variable(other)} must be set together`,
  )
  if (isSet('kafkaBrokers')) {
    const missing = NEEDED_WITH_KAFKA.filter((name) => !isSet(name))
    faults.push(...missing.map((name) => `${variable(name)} must be set too where KAFKA_BROKERS is`))
  } else if (isSet('redisUrls')) {
    faults.push('KAFKA_BROKERS must be set too where REDIS_URL is; the embedded engine uses neither')
  }
  const openKafkaFiles = environment.KAFKA_TLS === 'true' ? [] : KAFKA_TLS_FILES.filter(isSet)
  faults.push(...openKafkaFiles.map((name) => `KAFKA_TLS must be true where ${variable(name)} is set`))
  const redisUrls = (environment.REDIS_URL ?? '').split(',').map((url) => url.trim())
  const overTls = redisUrls.filter((url) => /^rediss:/i.test(url))
  if (overTls.length === 0) {
    const openRedisFiles = REDIS_TLS_FILES.filter(isSet)
    faults.push(
      ...openRedisFiles.map((name) => `REDIS_URL must begin with rediss:// where ${variable(name)} is set`),
    )
  } else if (overTls.length < redisUrls.length) {
    faults.push('REDIS_URL must have rediss:// for every node of the Cluster or for none')
  }
  return faults
}

/** Variables that begin like a setting of Mayfly's and are none: most often a slip of the pen. */
export function unknownVariables(environment: Environment): string[] {
  const known = new Set(Object.values<Setting<unknown>>(SETTINGS).map(({ variable }) => variable))
  return Object.keys(environment).filter((name) => name.startsWith('MAYFLY_') && !known.has(name))
}

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'

  constructor(readonly faults: readonly string[]) {
    super(`the configuration is not right:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
  }
}
