import { InvalidArgumentError, Option, type Command } from 'commander'
import { EXIT, Failure } from './failure.js'

/** More than the error of a few operations on numbers. */
const ROUNDING = 1e-12

const MAX_COUNT = 9_999_999_999

/** Makes a parser of whole numbers. */
export function wholeNumber(min = 1, max = MAX_COUNT, unit = ''): (text: string) => number {
  const range = max === MAX_COUNT ? `, at least ${min}` : ` from ${min} to ${max}`
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number${unit && ` of ${unit}`}${range}.`)
  }
}

/** Adds a `<name>:<value>` to the earlier ones. An inbox has one value for a name. */
export function label(text: string, before: readonly string[] = []): readonly string[] {
  const name = oneLabel(text).slice(0, text.indexOf(':') + 1)
  const earlier = before.find((each) => each.startsWith(name) && each !== text)
  if (earlier !== undefined) {
    throw new InvalidArgumentError(`${earlier} is given too, and an inbox has one value for each name.`)
  }
  return [...before, text]
}

/** A date is the start of the day in UTC, as for the intervals of usage figures. */
export function time(text: string): string {
  const whole = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text
  if (/^\d{4}-\d\d-\d\dT/i.test(whole) && !Number.isNaN(Date.parse(whole))) return whole
  throw new InvalidArgumentError(
    'It must be a time as in RFC 3339, such as 2026-11-21T08:00:00Z, or a date, such as 2026-11-21.',
  )
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
  return new Option('--password <password>', 'password of a protected inbox')
    .env('MAYFLY_INBOX_PASSWORD')
    .argParser(visibleText)
}

/** A text that is valid in a header. */
function visibleText(text: string): string {
  if (/^[!-~]+$/.test(text)) return text
  throw new InvalidArgumentError('It must consist of visible ASCII characters.')
}

export function accountPath(id: string): string {
  return `/v1/accounts/${encodeURIComponent(id)}`
}

/** Filters for messages, as in the API's query. */
export interface Filters {
  subject?: string
  sender?: string
  recipient?: string
  detail?: string
  text?: string
}

export function withFilters(command: Command): Command {
  return command
    .option('--subject <text>', 'the subject contains this text')
    .option('--sender <text>', "the sender's address or name contains this text")
    .option('--recipient <text>', 'the recipient contains this text')
    .option('--detail <text>', 'what follows + in the recipient contains this text')
    .option('--text <text>', 'the text, or the visible text of the HTML, contains this text')
}

/** Makes a parser of a number with a unit. Their product must be from `min` to `max`. */
function quantity(
  form: string,
  units: Readonly<Record<string, number>>,
  [min, max]: [min: number, max: number],
  count = /\d{1,9}/,
): (text: string) => number {
  const pattern = new RegExp(`^(${count.source})(\\D*)$`)
  return (text) => {
    const [, number = '', unit = ''] = pattern.exec(text) ?? []
    const value = Number(number) * (units[unit] ?? NaN)
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be ${form}.`)
  }
}

/** Arrivals per second. */
export const rate = quantity(
  'a number per s, m or h, such as 500/s, at most 1000000/s',
  { '/s': 1, '/m': 1 / 60, '/h': 1 / 3_600 },
  [Number.MIN_VALUE, 1_000_000],
  /\d{1,7}(?:\.\d{1,3})?/,
)

/** Milliseconds, at most a day. */
export const timeSpan = quantity(
  'a whole number of ms, s, m or h, such as 5m, at most 24h',
  { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 },
  [1, 86_400_000],
)

/** Bytes, from 1 KiB to 64 MiB. */
export const mailSize = quantity(
  'a number of bytes, k or m, from 1k to 64m',
  { '': 1, k: 1_024, m: 1_048_576 },
  [1_024, 67_108_864],
)

/** The host and port of a server: `mail.example:25` or `[::1]:25`. */
export function hostAndPort(text: string): { host: string; port: number } {
  const [, inBrackets, plain, digits] = /^(?:\[([\da-fA-F:.]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/.exec(text) ?? []
  const [host, port] = [inBrackets ?? plain, Number(digits)]
  if (host === undefined || !(port >= 1 && port <= 65_535)) {
    throw new InvalidArgumentError('It must be host:port, such as 127.0.0.1:2525 or [::1]:2525.')
  }
  return { host, port }
}

/** An address without characters that would end it in an SMTP command. */
export function senderAddress(text: string): string {
  if (!/^[!-;=?-~]+@[!-;=?-~]+$/.test(text) || text.length > 254) {
    throw new InvalidArgumentError('It must be an address, such as app@example.com.')
  }
  return text
}

/** The number of arrivals: those of the duration, at most `max`. Throws Failure if neither is given. */
export function arrivalCount(perSecond: number, durationMs = Infinity, max = Infinity): number {
  const arrivals = (perSecond * durationMs) / 1_000
  // 31 a minute are 31.000000000000004 in one minute.
  const total = Math.min(Math.ceil(arrivals * (1 - ROUNDING)), max)
  if (total === Infinity) throw new Failure(EXIT.usage, 'give --duration, --mails or both')
  return total
}
