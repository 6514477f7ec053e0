import { ValidateBy } from 'class-validator'
import { MOMENT_FORM, parseMoment } from './moment.js'

export const MOMENT_SCHEMA = {
  type: 'string',
  pattern: `^${MOMENT_FORM}$`,
  examples: ['2026-11-21T08:00:00Z'],
}

/** What names a moment in general, said with the name of the property in front. */
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
