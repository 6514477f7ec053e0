import { ValidateIf } from 'class-validator'

/** A property that may be left out; null, which IsOptional lets pass, is checked by its rules. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}
