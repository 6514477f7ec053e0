import { ValidateBy } from 'class-validator'

const TIME = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?'
const ZONE = '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)'

/** How a moment is written (RFC 3339, section 5.6), the seconds that the earth's turning adds aside. */
export const MOMENT_FORM = `\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]${TIME}${ZONE}`

const FORM = new RegExp(`^${MOMENT_FORM}$`)
const IN_UTC = /^\d{4}-/

/** The moment that a text names, to the millisecond; null if it names none, or one outside the years 0 to 9999. */
export function parseMoment(text: string): Date | null {
  if (!FORM.test(text)) return null
  const date = text.slice(0, 10)
  // A day that its month does not have would be taken for one of the next month.
  if (new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10) !== date) return null
  const moment = new Date(text.toUpperCase())
  return IN_UTC.test(moment.toISOString()) ? moment : null
}

/** The moment that a text which was validated names. */
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
  return ValidateBy({
    name: 'isMoment',
    validator: {
      validate: (value) => typeof value === 'string' && parseMoment(value) !== null,
      defaultMessage: () => `$property must be ${MOMENT_RULE}`,
    },
  })
}
