/** The variables that a process was started with. */
export type Environment = Readonly<Record<string, string | undefined>>

/** One environment variable: how it is read, and what the table of settings says of it. */
export interface Setting<Value> {
  variable: string
  help: string
  /** As text, for people; null if there is none. */
  defaultText: string | null
  /** Throws an Error that says what would be right. An unset or empty variable comes as undefined. */
  read(text: string | undefined): Value
}

/** What a value must be, and the sentence that says so to an operator. */
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
 * The kinds of settings. Without a default, the value of an unset variable is null.
 */

export function text(variable: string, help: string, options: Format & { default: string }): Setting<string>
export function text(variable: string, help: string, options?: Format): Setting<string | null>
export function text(
  variable: string,
  help: string,
  options: Format & { default?: string } = {},
): Setting<string | null> {
  return setting(variable, help, options.default ?? null, (value) => accepted(value, options))
}

/** Values between commas. */
export function list(variable: string, help: string, item: Format): Setting<readonly string[] | null> {
  return setting<readonly string[] | null>(variable, help, null, (value) =>
    value.split(',').map((each) => accepted(each.trim(), item)),
  )
}

function accepted(value: string, { accepts = () => true, expectation }: Format): string {
  const isRight = accepts instanceof RegExp ? accepts.test(value) : accepts(value)
  if (!isRight) throw new Error(expectation)
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
  range: { default: number; least: number; most: number },
): Setting<number> {
  return setting(variable, help, range.default, (value) => parseWhole(value, range))
}

export function port(variable: string, help: string, options: { default: number }): Setting<number>
export function port(variable: string, help: string): Setting<number | null>
export function port(
  variable: string,
  help: string,
  options: { default?: number } = {},
): Setting<number | null> {
  return setting(variable, help, options.default ?? null, (value) =>
    parseWhole(value, { least: 0, most: 65_535 }),
  )
}

function parseWhole(value: string, { least, most }: { least: number; most: number }): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN
  if (!(number >= least && number <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
  return number
}

export function yesOrNo(variable: string, help: string, options: { default: boolean }): Setting<boolean> {
  return setting(variable, help, options.default, (value) => {
    if (value !== 'true' && value !== 'false') throw new Error('must be true or false')
    return value === 'true'
  })
}

/** Both ends belong to it. */
export interface PortRange {
  first: number
  last: number
}

/** Ports and ranges of them, 80,443,1024-65535. */
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
    throw new Error('must be ports or ranges such as 1024-65535, with commas between')
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
