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

interface Description<Value> {
  help: string
  default: Value
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

export function text(variable: string, { help, default: fallback }: Description<string>): Setting<string> {
  return setting(variable, help, fallback, (value) => value)
}

export function optionalText(
  variable: string,
  help: string,
  isRight: (value: string) => boolean = () => true,
  expectation = '',
): Setting<string | null> {
  return setting<string | null>(variable, help, null, (value) => {
    if (!isRight(value)) throw new Error(expectation)
    return value
  })
}

export function matching(
  variable: string,
  pattern: RegExp,
  expectation: string,
  { help, default: fallback }: Description<string>,
): Setting<string> {
  return setting(variable, help, fallback, (value) => {
    if (!pattern.test(value)) throw new Error(expectation)
    return value
  })
}

export function optionalOneOf<const Choice extends string>(
  variable: string,
  choices: readonly Choice[],
  help: string,
): Setting<Choice | null> {
  return setting<Choice | null>(variable, help, null, (value) => choiceOf(value, choices))
}

export function oneOf<const Choice extends string>(
  variable: string,
  choices: readonly Choice[],
  { help, default: fallback }: Description<Choice>,
): Setting<Choice> {
  return setting(variable, help, fallback, (value) => choiceOf(value, choices))
}

function choiceOf<Choice extends string>(value: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((name) => name === value)
  if (choice === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
  return choice
}

export function wholeNumber(
  variable: string,
  range: { least: number; most: number },
  { help, default: fallback }: Description<number>,
): Setting<number> {
  return setting(variable, help, fallback, (value) => parseWhole(value, range))
}

export function yesOrNo(
  variable: string,
  { help, default: fallback }: Description<boolean>,
): Setting<boolean> {
  return setting(variable, help, fallback, (value) => {
    if (value !== 'true' && value !== 'false') throw new Error('must be true or false')
    return value === 'true'
  })
}

/** Values between commas; null if the variable is unset. */
export function optionalList(
  variable: string,
  help: string,
  item: RegExp | ((text: string) => boolean),
  expectation: string,
): Setting<readonly string[] | null> {
  return setting<readonly string[] | null>(variable, help, null, (value) => {
    const items = value.split(',').map((each) => each.trim())
    const isRight = item instanceof RegExp ? (each: string) => item.test(each) : item
    if (!items.every(isRight)) throw new Error(expectation)
    return items
  })
}

export function port(variable: string, description: Description<number>): Setting<number> {
  return wholeNumber(variable, { least: 0, most: 65_535 }, description)
}

/** Both ends belong to it. */
export interface PortRange {
  first: number
  last: number
}

/** Ports and ranges of them, 80,443,1024-65535. */
export function portRanges(
  variable: string,
  { help, default: fallback }: Description<string>,
): Setting<readonly PortRange[]> {
  return { variable, help, defaultText: fallback, read: (text = fallback) => text.split(',').map(portRange) }
}

function portRange(text: string): PortRange {
  const [, first, last = first] = /^\s*(\d{1,5})(?:-(\d{1,5}))?\s*$/.exec(text) ?? []
  const range = { first: Number(first), last: Number(last) }
  if (!(range.first >= 1 && range.first <= range.last && range.last <= 65_535)) {
    throw new Error('must be ports or ranges such as 1024-65535, with commas between')
  }
  return range
}

export function optionalPort(variable: string, help: string): Setting<number | null> {
  return setting<number | null>(variable, help, null, (value) =>
    parseWhole(value, { least: 0, most: 65_535 }),
  )
}

export function optionalUrl(
  variable: string,
  help: string,
  isRight: (url: URL) => boolean = () => true,
  expectation = 'must be an http or https URL',
): Setting<string | null> {
  return setting<string | null>(variable, help, null, (value) => {
    const url = URL.parse(value)
    if (url === null || !/^https?:$/.test(url.protocol) || !isRight(url)) throw new Error(expectation)
    return url.href.replace(/\/+$/, '')
  })
}

function parseWhole(value: string, { least, most }: { least: number; most: number }): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : NaN
  if (!(number >= least && number <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
  return number
}
