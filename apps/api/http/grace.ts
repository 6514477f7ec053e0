import { ValidateBy } from 'class-validator'
import { GRACE_UNIT_MS, parseGrace } from '#libs/domain/account/grace.js'
import { durationPattern } from '../openapi/duration-pattern.js'

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
