import { messageOf } from '#libs/runtime/errors.js'
import { KAFKA_SETTINGS, REDIS_SETTINGS, CLICKHOUSE_SETTINGS } from './distributed-settings.js'
import { INSTALLATION_SETTINGS } from './installation-settings.js'
import { MEMORY_SETTINGS, memoryDefaults, memoryNeeded } from './memory-settings.js'
import { PARSE_SETTINGS } from './parse-settings.js'
import { REACH_SETTINGS } from './reach-settings.js'
import { READER_SETTINGS } from './reader-settings.js'
import * as kind from './setting.js'
import type { Environment, Setting } from './setting.js'
import { faultsBetween } from './settings-together.js'
import { SMTP_SETTINGS } from './smtp-settings.js'
import { WEBHOOK_SETTINGS } from './webhook-settings.js'

/** Every setting, in the order of the table in docs/operating.md. */
export const SETTINGS = {
  ...REACH_SETTINGS,
  ...INSTALLATION_SETTINGS,
  ...KAFKA_SETTINGS,
  ...REDIS_SETTINGS,
  ...CLICKHOUSE_SETTINGS,
  ...MEMORY_SETTINGS,
  ...PARSE_SETTINGS,
  ...READER_SETTINGS,
  ...SMTP_SETTINGS,
  ...WEBHOOK_SETTINGS,
  logLevel: kind.oneOf('LOG_LEVEL', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    help: 'Lowest level that is logged: fatal, error, warn, info, debug, trace or silent.',
  }),
} as const

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
  faults.push(...faultsBetween(environment))
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

/** Every setting as a row of Markdown, in the order of the code. */
export function renderSettings(): string {
  const rows = Object.values<Setting<unknown>>(SETTINGS).map(
    ({ variable, defaultText, help }) => `| ${variable} | ${defaultText ?? 'unset'} | ${help} |`,
  )
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n') + '\n'
}
