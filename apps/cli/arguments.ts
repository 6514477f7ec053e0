import { InvalidArgumentError, Option, type Command } from 'commander'

/** Makes a parser of whole numbers. With a maximum, they may begin with zeros, up to its number of digits. */
export function wholeNumber(min = 1, max = Infinity, unit = ''): (text: string) => number {
  const range =
    max === Infinity ? `, at least ${min}` : min === 0 ? `, at most ${max}` : ` from ${min} to ${max}`
  const pattern = max === Infinity ? /^[1-9]\d{0,9}$/ : new RegExp(`^\\d{1,${String(max).length}}$`)
  return (text) => {
    const value = pattern.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number${unit && ` of ${unit}`}${range}.`)
  }
}

/** Adds a `<name>:<value>` to the earlier ones. */
export function label(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, oneLabel(text)]
}

/** A date is the start of the day in UTC, as for the intervals of usage figures. The API validates any other text. */
export function time(text: string): string {
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text
}

export function oneLabel(text: string): string {
  if (text.indexOf(':') < 1) throw new InvalidArgumentError('It must be <name>:<value>.')
  return text
}

export function pairsOf(labels: readonly string[]): Record<string, string> {
  const pairs = labels.map((text) => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon), text.slice(colon + 1)] as const
  })
  return Object.fromEntries(pairs)
}

/** For commands that read or change an inbox. */
export function passwordOption(): Option {
  return new Option('--password <password>', 'password of a protected inbox').env('MAYFLY_INBOX_PASSWORD')
}

export function inboxPath(id: string): string {
  return `/v1/inboxes/${encodeURIComponent(id)}`
}

/** Filters for messages, as in the API's query. */
export interface Filters {
  subject?: string
  sender?: string
  recipient?: string
  text?: string
}

export function withFilters(command: Command): Command {
  return command
    .option('--subject <text>', 'the subject contains this text')
    .option('--sender <text>', "the sender's address or name contains this text")
    .option('--recipient <text>', 'the recipient contains this text')
    .option('--text <text>', 'the text, or the visible text of the HTML, contains this text')
}
