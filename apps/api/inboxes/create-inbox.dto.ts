import { Equals, IsString, MaxLength, ValidateBy, ValidateIf } from 'class-validator'
import { IsLabels } from './labels.js'

const isGiven = (_: unknown, value: unknown): boolean => value !== undefined

/** The body of POST /v1/inboxes. */
export class CreateInbox {
  @ValidateIf(isGiven)
  @IsString({ message: 'duration must be a string such as "30m", "24h", "7d" or "2w"' })
  duration?: string

  @ValidateIf(isGiven)
  @Equals(false, { message: 'password_protected can only be false: this version has no protected inboxes' })
  password_protected?: boolean

  @ValidateIf((_, value) => value !== undefined && value !== null)
  @IsWellFormed()
  @MaxLength(200, { message: 'name must be a string of at most 200 characters' })
  @IsString({ message: 'name must be a string of at most 200 characters' })
  name?: string | null

  @ValidateIf(isGiven)
  @IsLabels()
  labels?: Record<string, string>
}

/** Half of a surrogate pair is no character, and does not come back as it was given. */
function IsWellFormed(): PropertyDecorator {
  return ValidateBy({
    name: 'isWellFormed',
    validator: {
      validate: (value) => typeof value === 'string' && value.isWellFormed(),
      defaultMessage: () => '$property must be Unicode text: it holds half a surrogate pair',
    },
  })
}
