import { Transform } from 'class-transformer'

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
