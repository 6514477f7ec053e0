import { Transform } from 'class-transformer'
import { ValidateIf } from 'class-validator'

/** Reads a whole number in digits; anything else stays as it is, for the validation to refuse. */
export function FromDigits(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value,
  )
}

/** Reads `true` and `false`; anything else stays as it is, for the validation to refuse. */
export function FromTrueOrFalse(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    value === 'true' ? true : value === 'false' ? false : value,
  )
}

/** A parameter that may come once or several times, as an array. */
export function Repeatable(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? [value] : value))
}

/** A property that may be left out. Null, which IsOptional lets pass, is checked by its rules. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}
