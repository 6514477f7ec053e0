import { applyDecorators, type Type } from '@nestjs/common'
import { Transform } from 'class-transformer'
import {
  ArrayMaxSize,
  ArrayMinSize,
  ArrayUnique,
  IsArray,
  IsBoolean,
  IsInt,
  Matches,
  Max,
  Min,
  ValidateBy,
  ValidateIf,
  type ValidationOptions,
} from 'class-validator'
import { ENVIRONMENT, GRACE_UNIT_MS, MAX_GRACE_MS, parseGrace } from '#libs/domain/account/access.js'
import { parseLifespan } from '#libs/domain/inbox/new-inbox.js'

/*
 * The rules that classes of bodies and queries use in addition to those of class-validator.
 */

/**
 * A rule of class-validator. In its message, `$property` is replaced with the property's name. `schema` is the rule as
 * JSON Schema, unless each property describes it.
 */
export function Rule(
  name: string,
  validate: (value: unknown) => boolean,
  message: string | ((value: unknown) => string),
  schema?: object,
): PropertyDecorator {
  const defaultMessage = (rule?: { value: unknown }) =>
    typeof message === 'string' ? message : message(rule?.value)
  const constraints = schema === undefined ? [] : [schema]
  return ValidateBy({ name, constraints, validator: { validate, defaultMessage } })
}

/** A text that can be parsed: `parse` returns null for any other. */
export function IsParsed(
  name: string,
  parse: (text: string) => unknown,
  message: string,
  schema: object,
): PropertyDecorator {
  return Rule(name, (value) => typeof value === 'string' && parse(value) !== null, message, schema)
}

/** A lone surrogate is not a character, and would be answered as another character. */
export function IsWellFormed(): PropertyDecorator {
  return Rule(
    'isWellFormed',
    (value) => typeof value === 'string' && value.isWellFormed(),
    '$property must be Unicode text, without lone surrogates',
  )
}

/** The name of an environment, which may be a new one. */
export function IsEnvironment(): PropertyDecorator {
  const message =
    '$property must be a lower-case letter, then up to 31 of lower-case letters, digits and hyphens'
  return Matches(ENVIRONMENT, { message })
}

export function IsWholeNumber(min: number, max: number): PropertyDecorator {
  return applyDecorators(
    IfGiven(),
    IsInt({ message: '$property must be a whole number' }),
    Min(min, { message: `$property must be at least ${min}` }),
    Max(max, { message: `$property must be at most ${max}` }),
  )
}

/** A list of `min` to `max` different items, each of which follows a rule. */
export function IsSetOf(
  rule: (options: ValidationOptions) => PropertyDecorator,
  max: number,
  message: string,
  min = 1,
): PropertyDecorator {
  return applyDecorators(
    IsArray({ message }),
    ArrayMinSize(min, { message }),
    ArrayMaxSize(max, { message }),
    ArrayUnique({ message }),
    rule({ each: true, message }),
  )
}

/** A property that may be left out. Its rules apply to null, unlike with IsOptional. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}

/** Converts digits to a number. Any other value is left unchanged, for the rules to refuse. */
export function FromDigits(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value,
  )
}

/** `true` or `false` in a query. */
export function IsTrueOrFalse(): PropertyDecorator {
  return applyDecorators(
    Transform(({ value }: { value: unknown }) =>
      value === 'true' ? true : value === 'false' ? false : value,
    ),
    IsBoolean({ message: '$property must be true or false' }),
  )
}

const REPEATABLE = 'repeatable'

/** Makes an array of a parameter that can be repeated, also if it is sent once. */
export function Repeatable(): PropertyDecorator {
  return applyDecorators(
    Reflect.metadata(REPEATABLE, true),
    Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? [value] : value)),
  )
}

export function isRepeatable(metatype: Type, property: string): boolean {
  return Reflect.hasMetadata(REPEATABLE, metatype.prototype as object, property)
}

const CLOCK_TIME = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?'
const ZONE = '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)'

/** The pattern of a time (RFC 3339, section 5.6), without leap seconds. */
export const TIME_PATTERN = `\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]${CLOCK_TIME}${ZONE}`

const TIME = new RegExp(`^${TIME_PATTERN}$`)
const IN_UTC = /^\d{4}-/

/** A time to the millisecond; null if the text is not a time, or the year is not from 0 to 9999 in UTC. */
export function parseTime(text: string): Date | null {
  if (!TIME.test(text)) return null
  const date = text.slice(0, 10)
  // Date reads a day that the month does not have as a day of the next month.
  if (new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10) !== date) return null
  const time = new Date(text.toUpperCase())
  return IN_UTC.test(time.toISOString()) ? time : null
}

/** Parses a text that has been validated. */
export function validated<Value>(parse: (text: string) => Value | null): (text: string) => Value {
  return (text) => {
    const value = parse(text)
    if (value === null) throw new TypeError(`not validated: ${text}`)
    return value
  }
}

export const readTime = validated(parseTime)
/** In milliseconds. */
export const readGrace = validated(parseGrace)
export const readLifespan = validated(parseLifespan)

export const TIME_SCHEMA = {
  type: 'string',
  pattern: `^${TIME_PATTERN}$`,
  examples: ['2026-11-21T08:00:00Z'],
}

export const TIME_FORM = 'a time as in RFC 3339, such as "2026-11-21T08:00:00Z"'

/** A time (RFC 3339), read by `parseTime`. */
export function IsTime(): PropertyDecorator {
  return IsParsed('isTime', parseTime, `$property must be ${TIME_FORM}`, TIME_SCHEMA)
}

/** How long a former secret stays valid. The maximum is checked when the command is decided. */
export function IsGrace(): PropertyDecorator {
  return IsParsed(
    'isGrace',
    parseGrace,
    '$property must be "0", or a whole number and one of s, m, h, d, w, at most "7d": "30m", "24h"',
    {
      type: 'string',
      pattern: `^(0[smhdw]?|${durationPattern(GRACE_UNIT_MS, MAX_GRACE_MS)})$`,
      examples: ['30m'],
    },
  )
}

/**
 * A pattern of durations from one unit to `maxMs`: JSON Schema can't limit a number in a text in another way. `unitMs`
 * has the milliseconds of each unit by its letter.
 */
export function durationPattern(unitMs: Readonly<Record<string, number>>, maxMs: number): string {
  const units = Object.entries(unitMs).map(([unit, ms]) => {
    return `(${wholeNumbersUpTo(Math.floor(maxMs / ms))})${unit}`
  })
  return `0*(${units.join('|')})`
}

/** A pattern of the numbers from 1 to `max`, without leading zeros. */
export function wholeNumbersUpTo(max: number): string {
  const digits = String(max)
  const shorter = digits.length === 1 ? [] : [`[1-9]${anyDigits(0, digits.length - 2)}`]
  // A smaller number with as many digits has the same digits up to an index, and a smaller digit there.
  const sameLength = Array.from(digits).flatMap((digit, index) => {
    const [lowest, highest] = [index === 0 ? 1 : 0, Number(digit) - 1]
    if (highest < lowest) return []
    const rest = digits.length - index - 1
    return [`${digits.slice(0, index)}[${lowest}-${highest}]${anyDigits(rest, rest)}`]
  })
  return [...shorter, ...sameLength, digits].join('|')
}

function anyDigits(min: number, max: number): string {
  return max === 0 ? '' : `\\d{${min},${max}}`
}
