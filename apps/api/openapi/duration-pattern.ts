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
