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
      'Made and printed once at first start where unset.',
    (value) => /^[\x21-\x7e]{20,200}$/.test(value),
    'must be 20 to 200 visible ASCII characters',
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
    { default: 10_000, help: 'Longest time for parsing one mail, in milliseconds.' },
  ),
  parseMemoryMib: kind.wholeNumber(
    'MAYFLY_PARSE_MEMORY_MIB',
    { least: 64, most: 16_384 },
    {
      default: 2048,
      help: 'Most heap of one parsing thread, in MiB; below 2048 V8 collects it much more often.',
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
    { default: 500, help: 'SMTP connections at once from one remote address.' },
  ),
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
  smtpTlsCert: kind.optionalText(
    'MAYFLY_SMTP_TLS_CERT',
    'PEM file of the certificate for STARTTLS; a self-signed one is made at first start where unset.',
  ),
  smtpTlsKey: kind.optionalText(
    'MAYFLY_SMTP_TLS_KEY',
    'PEM file of the key that belongs to the certificate.',
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

/** Settings that name an engine which is not part of this version. */
const DISTRIBUTED = ['KAFKA_BROKERS', 'REDIS_URL']

export type Environment = Readonly<Record<string, string | undefined>>

/** Throws ConfigurationError with every fault at once. */
export function readSettings(environment: Environment): Settings {
  const faults: string[] = []
  const values = Object.entries<Setting<unknown>>(SETTINGS).map(([name, setting]) => {
    const text = environment[setting.variable]
    try {
      return [name, setting.read(text === '' ? undefined : text)] as const
    } catch (error) {
      faults.push(`${setting.variable} ${error instanceof Error ? error.message : String(error)}`)
      return [name, null] as const
    }
  })
  for (const variable of DISTRIBUTED) {
    if (environment[variable]) {
      faults.push(`${variable} is set, but this version runs on the embedded engine only: unset it`)
    }
  }
  const settings = Object.fromEntries(values) as unknown as Settings
  if ((settings.smtpTlsCert === null) !== (settings.smtpTlsKey === null)) {
    faults.push('MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY must be set together')
  }
  // A slip in a name is often behind a fault elsewhere.
  if (faults.length > 0)
    faults.push(...unknownVariables(environment).map((name) => `${name} is not a setting`))
  if (faults.length > 0) throw new ConfigurationError(faults)
  return settings
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
