import { closestMatch } from 'leven'
import { messageOf, NamedError } from '#libs/runtime/errors.js'
import { memoryDefaults, memoryNeeded } from './memory-settings.js'
import type { Environment, Setting } from './setting.js'
import { SETTINGS } from './settings-table.js'
import { isLoopback } from './smtp-settings.js'

export type Settings = {
  readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name] extends Setting<infer Value>
    ? Value
    : never
}

/** Throws ConfigurationError with all errors. */
export function readSettings(environment: Environment): Settings {
  const errors: string[] = []
  const values = Object.entries<Setting<unknown>>(SETTINGS).map(([name, setting]) => {
    const text = environment[setting.variable]
    try {
      return [name, setting.read(text === '' ? undefined : text)] as const
    } catch (error) {
      errors.push(`${setting.variable} ${messageOf(error)}`)
      return [name, null] as const
    }
  })
  const read = Object.fromEntries(values) as unknown as Settings
  const settings = { ...read, ...unsetOf(environment, memoryDefaults(read.memoryMib, read)) }
  if (errors.length === 0 && environment.MAYFLY_MEMORY_MIB && memoryNeeded(settings) > settings.memoryMib) {
    errors.push(
      `MAYFLY_MEMORY_MIB must be at least what the other settings need, which is ${memoryNeeded(settings)}: see ` +
        'MAYFLY_SMTP_MEMORY_BYTES, MAYFLY_OPENED_MAIL_BYTES, MAYFLY_PARSE_THREADS and MAYFLY_PARSE_MEMORY_MIB',
    )
  }
  errors.push(...smtpErrors(environment), ...engineErrors(environment))
  // A typo in a variable's name often causes another error.
  if (errors.length > 0) errors.push(...unknownVariables(environment).map(({ explanation }) => explanation))
  if (errors.length > 0) throw new ConfigurationError(errors)
  return settings
}

/** The defaults of settings whose variables are not set. */
function unsetOf<Value extends Partial<Settings>>(environment: Environment, defaults: Value): Partial<Value> {
  const unset = Object.entries(defaults).filter(
    ([name]) => !environment[SETTINGS[name as keyof typeof SETTINGS].variable],
  )
  return Object.fromEntries(unset) as Partial<Value>
}

/** Used by the command line and the examples in the docs, and often exported in the shell that starts the server. */
const CLIENT_VARIABLES = ['MAYFLY_URL', 'MAYFLY_SMTP', 'MAYFLY_KEY', 'MAYFLY_INBOX_PASSWORD']

/** More changed characters than this are another word. */
const MAX_TYPOS = 2

/** A variable that begins with MAYFLY_ but is not a setting. */
export interface UnknownVariable {
  variable: string
  /** Whether its name is nearly that of a setting, or that of a setting after MAYFLY_. */
  isTypo: boolean
  /** Says so, and names that setting. */
  explanation: string
}

export function unknownVariables(environment: Environment): UnknownVariable[] {
  const settings = Object.values<Setting<unknown>>(SETTINGS).map(({ variable }) => variable)
  const known = new Set([...settings, ...CLIENT_VARIABLES])
  const bySuffix = new Map([...known].map((name) => [withoutPrefix(name), name]))
  const unknown = Object.keys(environment).filter((name) => name.startsWith('MAYFLY_') && !known.has(name))
  return unknown.map((variable) => {
    const suffix = withoutPrefix(variable)
    // In a short name, two other characters are often another word.
    const maxDistance = Math.min(MAX_TYPOS, Math.floor(suffix.length / 3))
    const meant = bySuffix.get(closestMatch(suffix, [...bySuffix.keys()], { maxDistance }) ?? '')
    const hint = meant === undefined ? '' : `: did you mean ${meant}?`
    return { variable, isTypo: meant !== undefined, explanation: `${variable} is not a setting${hint}` }
  })
}

function withoutPrefix(variable: string): string {
  return variable.replace(/^MAYFLY_/, '')
}

export class ConfigurationError extends NamedError {
  constructor(readonly errors: readonly string[]) {
    super(`the configuration is invalid:\n${errors.map((error) => `  - ${error}`).join('\n')}`)
  }
}

/** Settings that have no effect without each other. */
const PAIRS = [
  ['MAYFLY_SMTP_TLS_CERT', 'MAYFLY_SMTP_TLS_KEY'],
  ['KAFKA_TLS_CERT', 'KAFKA_TLS_KEY'],
  ['REDIS_TLS_CERT', 'REDIS_TLS_KEY'],
  ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME'],
  ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'],
] as const
/** Further settings that the distributed engine requires, since all its processes must agree on them. */
const NEEDED_WITH_KAFKA = ['REDIS_URL', 'MAYFLY_MASTER_KEY', 'MAYFLY_BOOTSTRAP_API_KEY']
/** Settings that the embedded engine does not use. */
const ONLY_WITH_KAFKA = ['REDIS_URL', 'CLICKHOUSE_URL']

/** Refused without TLS, so that no operator assumes that the connection uses it. */
const KAFKA_TLS_FILES = ['KAFKA_TLS_CA', 'KAFKA_TLS_CERT', 'KAFKA_TLS_KEY']
const REDIS_TLS_FILES = ['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY']

/** Errors in SMTP settings that are valid one by one but not together. */
function smtpErrors(environment: Environment): string[] {
  const errors: string[] = []
  const { MAYFLY_SMTP_TLS: tls = '', MAYFLY_SMTP_HOST: host = '' } = environment
  const { MAYFLY_SMTP_TLS_CERT: cert = '', MAYFLY_SMTP_TLS_KEY: key = '' } = environment
  // One without the other is an error in engineErrors.
  if (cert !== '' && key !== '' && tls !== 'files') {
    errors.push('MAYFLY_SMTP_TLS must be files if MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY are set')
  }
  if (tls === 'files' && cert === '' && key === '') {
    errors.push('MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY must be set if MAYFLY_SMTP_TLS is files')
  }
  if (tls === '' || tls === 'off') {
    const must = 'MAYFLY_SMTP_TLS must be self-signed or files if'
    if (environment.MAYFLY_SMTP_REQUIRE_TLS === 'true') errors.push(`${must} MAYFLY_SMTP_REQUIRE_TLS is true`)
    if (environment.MAYFLY_SMTPS_PORT) errors.push(`${must} MAYFLY_SMTPS_PORT is set`)
  }
  const unknown = environment.MAYFLY_UNKNOWN_RECIPIENTS ?? ''
  const accepts = unknown === 'discard' || unknown === 'create'
  if (environment.MAYFLY_DISCARD_FROM && !accepts) {
    errors.push('MAYFLY_UNKNOWN_RECIPIENTS must be create or discard if MAYFLY_DISCARD_FROM is set')
  }
  const listensOn = SETTINGS.smtpHost.read(host === '' ? undefined : host)
  if (accepts && !environment.MAYFLY_DISCARD_FROM && !isLoopback(listensOn)) {
    errors.push(
      `MAYFLY_DISCARD_FROM must be set if MAYFLY_UNKNOWN_RECIPIENTS is ${unknown} and MAYFLY_SMTP_HOST is not a ` +
        'loopback address',
    )
  }
  return errors
}

/** The same for settings of the engine, and for pairs. */
function engineErrors(environment: Environment): string[] {
  const isSet = (variable: string) => Boolean(environment[variable])
  const errors = PAIRS.filter(([one, other]) => isSet(one) !== isSet(other)).map(
    ([one, other]) => `${one} and ${other} must be set together`,
  )
  if (isSet('KAFKA_BROKERS')) {
    const missing = NEEDED_WITH_KAFKA.filter((variable) => !isSet(variable))
    errors.push(...missing.map((variable) => `${variable} must be set if KAFKA_BROKERS is set`))
    if (!isSet('CLICKHOUSE_URL') && environment.MAYFLY_COUNT_USAGE !== 'false') {
      errors.push('CLICKHOUSE_URL must be set if KAFKA_BROKERS is set, unless MAYFLY_COUNT_USAGE is false')
    }
  } else {
    const unused = ONLY_WITH_KAFKA.filter(isSet)
    errors.push(
      ...unused.map(
        (variable) => `KAFKA_BROKERS must be set if ${variable} is set; the embedded engine uses neither`,
      ),
    )
  }
  if (environment.KAFKA_TLS !== 'true') {
    const unused = KAFKA_TLS_FILES.filter(isSet)
    errors.push(...unused.map((variable) => `KAFKA_TLS must be true if ${variable} is set`))
  }
  const redisUrls = (environment.REDIS_URL ?? '').split(',').map((url) => url.trim())
  const overTls = redisUrls.filter((url) => /^rediss:/i.test(url))
  if (overTls.length === 0) {
    const unused = REDIS_TLS_FILES.filter(isSet)
    errors.push(...unused.map((variable) => `REDIS_URL must begin with rediss:// if ${variable} is set`))
  } else if (overTls.length < redisUrls.length) {
    errors.push('REDIS_URL must use rediss:// for all nodes of the Cluster or for none')
  }
  if (isSet('CLICKHOUSE_TLS_CA') && !/^https:/i.test(environment.CLICKHOUSE_URL ?? '')) {
    errors.push('CLICKHOUSE_URL must begin with https:// if CLICKHOUSE_TLS_CA is set')
  }
  return errors
}
