import { Transform } from 'class-transformer'
import { ValidateIf, ValidateBy } from 'class-validator'
import { GRACE_UNIT_MS, parseGrace } from '#libs/domain/account/api-key.js'

/** Reads a whole number in digits. The validation refuses anything else, which is left as it is. */
export function FromDigits(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value,
  )
}

/** Reads `true` and `false`. The validation refuses anything else, which is left as it is. */
export function FromTrueOrFalse(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    value === 'true' ? true : value === 'false' ? false : value,
  )
}

/** A parameter that may come once or several times, as an array. */
export function Repeatable(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? [value] : value))
}

/** A rule of class-validator. In its message `$property` stands for the property's name. */
export function Rule(
  name: string,
  validate: (value: unknown) => boolean,
  message: string,
): PropertyDecorator {
  return ValidateBy({ name, validator: { validate, defaultMessage: () => message } })
}

/** A property that may be left out. Null, which IsOptional lets pass, is checked by its rules. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}

/** The query, or the body, of a request that takes none: whatever is in it is a fault. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- Nest takes it as the type to check against.
export class NoParameters {}

const TIME = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?'
const ZONE = '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)'

/** How a moment is written (RFC 3339, section 5.6), without leap seconds. */
export const MOMENT_FORM = `\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]${TIME}${ZONE}`

const FORM = new RegExp(`^${MOMENT_FORM}$`)
const IN_UTC = /^\d{4}-/

/** The moment that a text names, to the millisecond; null if it names none, or one outside the years 0 to 9999. */
export function parseMoment(text: string): Date | null {
  if (!FORM.test(text)) return null
  const date = text.slice(0, 10)
  // Date takes a day that its month does not have for one of the next month.
  if (new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10) !== date) return null
  const moment = new Date(text.toUpperCase())
  return IN_UTC.test(moment.toISOString()) ? moment : null
}

/** The moment that a validated text names. */
export function readMoment(text: string): Date {
  const moment = parseMoment(text)
  if (moment === null) throw new TypeError(`not a moment: ${text}`)
  return moment
}

/** A moment as JSON Schema. */
export const MOMENT_SCHEMA = {
  type: 'string',
  pattern: `^${MOMENT_FORM}$`,
  examples: ['2026-11-21T08:00:00Z'],
}

/** What is accepted as a moment, for the message of a fault. */
export const MOMENT_RULE = 'a moment as RFC 3339 has it: "2026-11-21T08:00:00Z"'

/** A moment (RFC 3339), read by `parseMoment`. */
export function IsMoment(): PropertyDecorator {
  const isMoment = (value: unknown) => typeof value === 'string' && parseMoment(value) !== null
  return Rule('isMoment', isMoment, `$property must be ${MOMENT_RULE}`)
}

const LONGEST_MS = 7 * 86_400_000

/** A grace period as JSON Schema. */
export const GRACE_SCHEMA = {
  type: 'string',
  pattern: `^(0[smhdw]?|${durationPattern(GRACE_UNIT_MS, LONGEST_MS)})$`,
  examples: ['30m'],
}

/** How long a former secret goes on working. The decision on the command bounds it. */
export function IsGrace(): PropertyDecorator {
  return Rule(
    'isGrace',
    (value) => typeof value === 'string' && parseGrace(value) !== null,
    '$property must be "0", or a whole number and one of s, m, h, d, w, at most "7d": "30m", "24h"',
  )
}

/**
 * A pattern of durations from one unit up to `longestMs`: JSON Schema has no other way to bound a number in a text.
 * `unitMs` has the milliseconds of each unit by its letter.
 */
export function durationPattern(unitMs: Readonly<Record<string, number>>, longestMs: number): string {
  const units = Object.entries(unitMs).map(([unit, ms]) => {
    return `(${wholeNumbersUpTo(Math.floor(longestMs / ms))})${unit}`
  })
  return `0*(${units.join('|')})`
}

/** A pattern of the numbers from 1 to `most`, without leading zeros. */
export function wholeNumbersUpTo(most: number): string {
  const digits = String(most)
  const shorter = digits.length === 1 ? [] : [`[1-9]${anyDigits(0, digits.length - 2)}`]
  // A number with as many digits is smaller from some digit on.
  const asLong = Array.from(digits).flatMap((digit, index) => {
    const [least, below] = [index === 0 ? 1 : 0, Number(digit) - 1]
    if (below < least) return []
    const rest = digits.length - index - 1
    return [`${digits.slice(0, index)}[${least}-${below}]${anyDigits(rest, rest)}`]
  })
  return [...shorter, ...asLong, digits].join('|')
}

function anyDigits(least: number, most: number): string {
  return most === 0 ? '' : `\\d{${least},${most}}`
}
