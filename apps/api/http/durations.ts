import { ValidateBy } from 'class-validator'
import { GRACE_UNIT_MS, parseGrace } from '#libs/domain/account/grace.js'

const LONGEST_MS = 7 * 86_400_000

/** What is taken, as JSON Schema. */
export const GRACE_SCHEMA = {
  type: 'string',
  pattern: `^(0[smhdw]?|${durationPattern(GRACE_UNIT_MS, LONGEST_MS)})$`,
  examples: ['30m'],
}

/** How long a former secret goes on working; whether that is too long is decided further in. */
export function IsGrace(): PropertyDecorator {
  return ValidateBy({
    name: 'isGrace',
    validator: {
      validate: (value) => typeof value === 'string' && parseGrace(value) !== null,
      defaultMessage: () =>
        '$property must be "0", or a whole number and one of s, m, h, d, w, at most "7d": "30m", "24h"',
    },
  })
}

/**
 * A pattern of durations from one unit up to `longestMs`: JSON Schema has no other way to bound a number within a text.
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
  // Those as long are smaller from some digit on.
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
