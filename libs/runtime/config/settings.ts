import { messageOf } from '#libs/runtime/errors.js'
import { memoryDefaults, memoryNeeded } from './memory-settings.js'
import type { Environment, Setting } from './setting.js'
import { SETTINGS } from './settings-table.js'
import { isLoopback } from './smtp-settings.js'

export type Settings = {
  readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name] extends Setting<infer Value>
    ? Value
    : never
}

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
  const read = Object.fromEntries(values) as unknown as Settings
  const settings = { ...read, ...unsetOf(environment, memoryDefaults(read.memoryMib, read)) }
  if (faults.length === 0 && environment.MAYFLY_MEMORY_MIB && memoryNeeded(settings) > settings.memoryMib) {
    faults.push(
      `MAYFLY_MEMORY_MIB must be at least what other settings come to, ${memoryNeeded(settings)} here: see ` +
        'MAYFLY_SMTP_MEMORY_BYTES, MAYFLY_OPENED_MAIL_BYTES, MAYFLY_PARSE_THREADS and MAYFLY_PARSE_MEMORY_MIB',
    )
  }
  faults.push(...smtpFaults(environment), ...engineFaults(environment))
  // A slip in a name is often behind a fault elsewhere.
  if (faults.length > 0)
    faults.push(...unknownVariables(environment).map((name) => `${name} is not a setting`))
  if (faults.length > 0) throw new ConfigurationError(faults)
  return settings
}

/** Those whose variables are not set. */
function unsetOf<Value extends Partial<Settings>>(environment: Environment, defaults: Value): Partial<Value> {
  const unset = Object.entries(defaults).filter(
    ([name]) => !environment[SETTINGS[name as keyof typeof SETTINGS].variable],
  )
  return Object.fromEntries(unset) as Partial<Value>
}

/** Read by the command line and used in the docs' examples: often exported in the shell that starts the server. */
const CLIENT_VARIABLES = ['MAYFLY_URL', 'MAYFLY_SMTP', 'MAYFLY_KEY', 'MAYFLY_INBOX_PASSWORD']

/** Variables that begin with MAYFLY_ but that nothing reads: most often a typo. */
export function unknownVariables(environment: Environment): string[] {
  const settings = Object.values<Setting<unknown>>(SETTINGS).map(({ variable }) => variable)
  const known = new Set([...settings, ...CLIENT_VARIABLES])
  return Object.keys(environment).filter((name) => name.startsWith('MAYFLY_') && !known.has(name))
}

export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'

  constructor(readonly faults: readonly string[]) {
    super(`the configuration is not right:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
  }
}

/** Settings that mean nothing one without the other. */
const PAIRS = [
  ['MAYFLY_SMTP_TLS_CERT', 'MAYFLY_SMTP_TLS_KEY'],
  ['KAFKA_TLS_CERT', 'KAFKA_TLS_KEY'],
  ['REDIS_TLS_CERT', 'REDIS_TLS_KEY'],
  ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME'],
  ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'],
] as const
/** What the distributed engine, which KAFKA_BROKERS chooses, needs besides: many processes must agree on it. */
const NEEDED_WITH_KAFKA = ['REDIS_URL', 'MAYFLY_MASTER_KEY', 'MAYFLY_BOOTSTRAP_API_KEY']
/** What the embedded engine has no use for. */
const ONLY_WITH_KAFKA = ['REDIS_URL', 'CLICKHOUSE_URL']

/** What would be ignored if the connection is not over TLS: an operator who sets it thinks that it is. */
const KAFKA_TLS_FILES = ['KAFKA_TLS_CA', 'KAFKA_TLS_CERT', 'KAFKA_TLS_KEY']
const REDIS_TLS_FILES = ['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY']

/** A sentence for each fault of SMTP settings that are right by themselves and wrong together. */
function smtpFaults(environment: Environment): string[] {
  const faults: string[] = []
  const { MAYFLY_SMTP_TLS: tls = '', MAYFLY_SMTP_HOST: host = '' } = environment
  const { MAYFLY_SMTP_TLS_CERT: cert = '', MAYFLY_SMTP_TLS_KEY: key = '' } = environment
  // One without the other is a fault already.
  if (cert !== '' && key !== '' && tls !== 'files') {
    faults.push('MAYFLY_SMTP_TLS must be files if MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY are set')
  }
  if (tls === 'files' && cert === '' && key === '') {
    faults.push('MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY must be set if MAYFLY_SMTP_TLS is files')
  }
  if (tls === '' || tls === 'off') {
    const must = 'MAYFLY_SMTP_TLS must be self-signed or files if'
    if (environment.MAYFLY_SMTP_REQUIRE_TLS === 'true') faults.push(`${must} MAYFLY_SMTP_REQUIRE_TLS is true`)
    if (environment.MAYFLY_SMTPS_PORT) faults.push(`${must} MAYFLY_SMTPS_PORT is set`)
  }
  const discards = environment.MAYFLY_UNKNOWN_RECIPIENTS === 'discard'
  if (environment.MAYFLY_DISCARD_FROM && !discards) {
    faults.push('MAYFLY_UNKNOWN_RECIPIENTS must be discard if MAYFLY_DISCARD_FROM is set')
  }
  const listensOn = SETTINGS.smtpHost.read(host === '' ? undefined : host)
  if (discards && !environment.MAYFLY_DISCARD_FROM && !isLoopback(listensOn)) {
    faults.push(
      'MAYFLY_DISCARD_FROM must be set if MAYFLY_UNKNOWN_RECIPIENTS is discard and MAYFLY_SMTP_HOST is not a loopback ' +
        'address',
    )
  }
  return faults
}

/** The same for the settings of the engine. */
function engineFaults(environment: Environment): string[] {
  const isSet = (variable: string) => Boolean(environment[variable])
  const faults = PAIRS.filter(([one, other]) => isSet(one) !== isSet(other)).map(
    ([one, other]) => `${one} and ${other} must be set together`,
  )
  if (isSet('KAFKA_BROKERS')) {
    const missing = NEEDED_WITH_KAFKA.filter((variable) => !isSet(variable))
    faults.push(...missing.map((variable) => `${variable} must be set too where KAFKA_BROKERS is`))
    if (!isSet('CLICKHOUSE_URL') && environment.MAYFLY_COUNT_USAGE !== 'false') {
      faults.push('CLICKHOUSE_URL must be set too where KAFKA_BROKERS is, unless MAYFLY_COUNT_USAGE is false')
    }
  } else {
    const useless = ONLY_WITH_KAFKA.filter(isSet)
    faults.push(
      ...useless.map(
        (variable) => `KAFKA_BROKERS must be set too where ${variable} is; the embedded engine uses neither`,
      ),
    )
  }
  if (environment.KAFKA_TLS !== 'true') {
    const unused = KAFKA_TLS_FILES.filter(isSet)
    faults.push(...unused.map((variable) => `KAFKA_TLS must be true where ${variable} is set`))
  }
  const redisUrls = (environment.REDIS_URL ?? '').split(',').map((url) => url.trim())
  const overTls = redisUrls.filter((url) => /^rediss:/i.test(url))
  if (overTls.length === 0) {
    const unused = REDIS_TLS_FILES.filter(isSet)
    faults.push(...unused.map((variable) => `REDIS_URL must begin with rediss:// where ${variable} is set`))
  } else if (overTls.length < redisUrls.length) {
    faults.push('REDIS_URL must have rediss:// for every node of the Cluster or for none')
  }
  if (isSet('CLICKHOUSE_TLS_CA') && !/^https:/i.test(environment.CLICKHOUSE_URL ?? '')) {
    faults.push('CLICKHOUSE_URL must begin with https:// where CLICKHOUSE_TLS_CA is set')
  }
  return faults
}
