/** The environment variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** One environment variable: how it is parsed, and its row in the table of settings. */
export interface Setting<Value> {
  variable: string
  help: string
  /** For the table; null if there is no default. */
  defaultText: string | null
  /** Undefined for an unset or empty variable. Throws an Error that says what the value must be. */
  read(text: string | undefined): Value
}

/** Which values are valid, and the error text for others. */
interface Format {
  accepts?: RegExp | ((text: string) => boolean)
  expectation?: string
}

function setting<Value>(
  variable: string,
  help: string,
  defaultValue: Value,
  parse: (text: string) => Value,
): Setting<Value> {
  return {
    variable,
    help,
    defaultText: defaultValue === null ? null : String(defaultValue),
    read: (text) => (text === undefined ? defaultValue : parse(text)),
  }
}

/*
 * The kinds of settings. An unset variable without a default is null.
 */

export function text(variable: string, help: string, options: Format & { default: string }): Setting<string>
export function text(variable: string, help: string, options?: Format): Setting<string | null>
export function text(
  variable: string,
  help: string,
  options: Format & { default?: string } = {},
): Setting<string | null> {
  return setting(variable, help, options.default ?? null, (value) => validated(value, options))
}

/** Values separated by commas. */
export function list(variable: string, help: string, item: Format): Setting<readonly string[] | null> {
  return setting<readonly string[] | null>(variable, help, null, (value) =>
    value.split(',').map((each) => validated(each.trim(), item)),
  )
}

function validated(value: string, { accepts = () => true, expectation }: Format): string {
  const isValid = accepts instanceof RegExp ? accepts.test(value) : accepts(value)
  if (!isValid) throw new Error(expectation)
  return value
}

export function oneOf<const Choice extends string>(
  variable: string,
  help: string,
  options: { choices: readonly Choice[]; default: NoInfer<Choice> },
): Setting<Choice>
export function oneOf<const Choice extends string>(
  variable: string,
  help: string,
  options: { choices: readonly Choice[] },
): Setting<Choice | null>
export function oneOf<const Choice extends string>(
  variable: string,
  help: string,
  options: { choices: readonly Choice[]; default?: Choice },
): Setting<Choice | null> {
  const { choices } = options
  return setting<Choice | null>(variable, help, options.default ?? null, (value) => {
    const choice = choices.find((name) => name === value)
    if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return choice
  })
}

export function wholeNumber(
  variable: string,
  help: string,
  range: { default: number; min: number; max: number },
): Setting<number> {
  return setting(variable, help, range.default, (value) => parseWholeNumber(value, range))
}

export function port(variable: string, help: string, options: { default: number }): Setting<number>
export function port(variable: string, help: string): Setting<number | null>
export function port(
  variable: string,
  help: string,
  options: { default?: number } = {},
): Setting<number | null> {
  return setting(variable, help, options.default ?? null, (value) =>
    parseWholeNumber(value, { min: 0, max: 65_535 }),
  )
}

function parseWholeNumber(value: string, { min, max }: { min: number; max: number }): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN
  if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
  return number
}

export function yesOrNo(variable: string, help: string, options: { default: boolean }): Setting<boolean> {
  return setting(variable, help, options.default, (value) => {
    if (value !== 'true' && value !== 'false') throw new Error('must be true or false')
    return value === 'true'
  })
}

/** Includes both ends. */
export interface PortRange {
  first: number
  last: number
}

/** Ports and port ranges, such as 80,443,1024-65535. */
export function portRanges(
  variable: string,
  help: string,
  { default: defaultText }: { default: string },
): Setting<readonly PortRange[]> {
  return { variable, help, defaultText, read: (text = defaultText) => text.split(',').map(portRange) }
}

function portRange(text: string): PortRange {
  const [, first, last = first] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(text) ?? []
  const range = { first: Number(first), last: Number(last) }
  if (!(range.first >= 1 && range.first <= range.last && range.last <= 65_535)) {
    throw new Error('must be ports or ranges such as 1024-65535, separated by commas')
  }
  return range
}

export function url(
  variable: string,
  help: string,
  {
    accepts = () => true,
    expectation = 'must be an http or https URL',
  }: { accepts?: (url: URL) => boolean; expectation?: string } = {},
): Setting<string | null> {
  return setting<string | null>(variable, help, null, (value) => {
    const parsed = URL.parse(value)
    if (parsed === null || !/^https?:$/.test(parsed.protocol) || !accepts(parsed)) {
      throw new Error(expectation)
    }
    return parsed.href.replace(/\/+$/, '')
  })
}
