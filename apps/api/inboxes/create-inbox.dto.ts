import { Equals, IsObject, IsString, MaxLength, ValidateIf } from 'class-validator'
import { IsLabels } from './labels.js'

const isGiven = (_: unknown, value: unknown): boolean => value !== undefined

/** The body of POST /v1/inboxes. */
export class CreateInbox {
  @ValidateIf(isGiven)
  @IsString({ message: 'duration must be a string such as "30m", "24h", "7d" or "2w"' })
  @MaxLength(20, { message: 'duration must be a whole number and one of m, h, d, w' })
  duration?: string

  @ValidateIf(isGiven)
  @Equals(false, { message: 'password_protected can only be false: this version has no protected inboxes' })
  password_protected?: boolean

  @ValidateIf((_, value) => value !== undefined && value !== null)
  @IsString({ message: 'name must be a string' })
  @MaxLength(200, { message: 'name may have 200 characters' })
  name?: string | null

  @ValidateIf(isGiven)
  @IsObject({ message: 'labels must be an object of strings' })
  @IsLabels()
  labels?: Record<string, string>
}
