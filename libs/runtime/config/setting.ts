export type Environment = Readonly<Record<string, string | undefined>>

/** How an environment variable is parsed, and its text in the table of settings. */
interface Kind<Value> {
  help: string
  /** For the table; null if there is no default. */
  defaultText: string | null
  /** Undefined for an unset or empty variable. Throws an Error that says what the value must be. */
  read(text: string | undefined): Value
}

export interface Setting<Value> extends Kind<Value> {
  variable: string
}

/**
 * The settings with the names of their variables: a prefix and the property's name, `smtpPort` is MAYFLY_SMTP_PORT. A
 * kind with a `variable` keeps it.
 */
export function named<const Kinds extends Readonly<Record<string, Kind<unknown>>>>(
  prefix: 'MAYFLY_' | '',
  kinds: Kinds,
): { readonly [Name in keyof Kinds]: Kinds[Name] & { variable: string } } {
  const settings = Object.entries(kinds).map(([name, kind]) => {
    const variable = prefix + name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
    return [name, { variable, ...kind }] as const
  })
  return Object.fromEntries(settings) as ReturnType<typeof named<Kinds>>
}

/** Which values are valid, and the error text for others. */
interface Format {
  accepts?: RegExp | ((text: string) => boolean)
  expectation?: string
}

function kind<Value>(help: string, defaultValue: Value, parse: (text: string) => Value): Kind<Value> {
  return {
    help,
    defaultText: defaultValue === null ? null : String(defaultValue),
    read: (text) => (text === undefined ? defaultValue : parse(text)),
  }
}

/*
 * The kinds of settings. An unset variable without a default is null.
 */

export function text(help: string, options: Format & { default: string }): Kind<string>
export function text(help: string, options?: Format): Kind<string | null>
export function text(help: string, options: Format & { default?: string } = {}): Kind<string | null> {
  return kind(help, options.default ?? null, (value) => validated(value, options))
}

/** Values separated by commas. */
export function list(help: string, item: Format): Kind<readonly string[] | null> {
  return kind<readonly string[] | null>(help, null, (value) =>
    value.split(',').map((each) => validated(each.trim(), item)),
  )
}

function validated(value: string, { accepts = () => true, expectation }: Format): string {
  const isValid = accepts instanceof RegExp ? accepts.test(value) : accepts(value)
  if (!isValid) throw new Error(expectation)
  return value
}

export function oneOf<const Choice extends string>(
  help: string,
  options: { choices: readonly Choice[]; default: NoInfer<Choice> },
): Kind<Choice>
export function oneOf<const Choice extends string>(
  help: string,
  options: { choices: readonly Choice[] },
): Kind<Choice | null>
export function oneOf<const Choice extends string>(
  help: string,
  options: { choices: readonly Choice[]; default?: Choice },
): Kind<Choice | null> {
  const { choices } = options
  return kind<Choice | null>(help, options.default ?? null, (value) => {
    const choice = choices.find((name) => name === value)
    if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return choice
  })
}

export function wholeNumber(
  help: string,
  range: { default: number; min: number; max: number },
): Kind<number> {
  return kind(help, range.default, (value) => parseWholeNumber(value, range))
}

export function port(help: string, options: { default: number }): Kind<number>
export function port(help: string): Kind<number | null>
export function port(help: string, options: { default?: number } = {}): Kind<number | null> {
  return kind(help, options.default ?? null, (value) => parseWholeNumber(value, { min: 0, max: 65_535 }))
}

function parseWholeNumber(value: string, { min, max }: { min: number; max: number }): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN
  if (!(number >= min && number <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
  return number
}

export function yesOrNo(help: string, options: { default: boolean }): Kind<boolean> {
  return kind(help, options.default, (value) => {
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
  help: string,
  { default: defaultText }: { default: string },
): Kind<readonly PortRange[]> {
  return { help, defaultText, read: (text = defaultText) => text.split(',').map(portRange) }
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
  help: string,
  {
    accepts = () => true,
    expectation = 'must be an http or https URL',
  }: { accepts?: (url: URL) => boolean; expectation?: string } = {},
): Kind<string | null> {
  return kind<string | null>(help, null, (value) => {
    const parsed = URL.parse(value)
    if (parsed === null || !/^https?:$/.test(parsed.protocol) || !accepts(parsed)) {
      throw new Error(expectation)
    }
    return parsed.href.replace(/\/+$/, '')
  })
}
