import { ValidateBy } from 'class-validator'

const MAX_CHARACTERS = 200

/** What is taken, as JSON Schema. */
export const NAME_SCHEMA = { type: 'string', minLength: 1, maxLength: MAX_CHARACTERS, pattern: '\\S' }

/** What people call a thing: 1 to 200 characters of Unicode text, without half surrogate pairs. */
export function IsName(): PropertyDecorator {
  return ValidateBy({
    name: 'isName',
    validator: {
      validate: (value) =>
        typeof value === 'string' &&
        value.trim() !== '' &&
        Array.from(value).length <= MAX_CHARACTERS &&
        value.isWellFormed(),
      defaultMessage: () => `$property must be a string of 1 to ${MAX_CHARACTERS} characters`,
    },
  })
}
