import { PLANS } from '#libs/account/plan.js'
import { UNIT_MS } from '#libs/inbox/lifespan.js'

const LONGEST_MS = Math.max(...Object.values(PLANS).map(({ retention }) => retention.ms))

/** The durations that any plan takes, for JSON Schema, which has no other way to bound a number within a text. */
export const DURATION_PATTERN = `^0*(${Object.entries(UNIT_MS)
  .map(([unit, ms]) => `(${wholeNumbersUpTo(Math.floor(LONGEST_MS / ms))})${unit}`)
  .join('|')})$`

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
