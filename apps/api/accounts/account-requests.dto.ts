import { IsString, MaxLength, ValidateBy, ValidateIf } from 'class-validator'
import {
  MOST_MESSAGES,
  MOST_REQUESTS_PER_MINUTE,
  parseRetention,
  type AccountLimits,
} from '#libs/account/plan.js'
import { IsName } from './name.js'

const isGiven = (_: unknown, value: unknown): boolean => value !== undefined
const isMoreThanNull = (_: unknown, value: unknown): boolean => value !== undefined && value !== null

/** Limits as they stand in a body. */
export interface LimitsJson {
  requests_per_minute?: number
  retention?: string
  max_messages?: number
}

/** The body of POST /v1/accounts. */
export class OpenAccount {
  @IsName()
  name!: string

  @MaxLength(32, { message: 'plan must be the name of a plan' })
  @IsString({ message: 'plan must be the name of a plan' })
  plan!: string

  @ValidateIf(isMoreThanNull)
  @IsLimits()
  limits?: LimitsJson | null
}

/** The body of PATCH /v1/accounts/{id}. */
export class ChangeAccount {
  @ValidateIf(isGiven)
  @MaxLength(32, { message: 'plan must be the name of a plan' })
  @IsString({ message: 'plan must be the name of a plan' })
  plan?: string

  @ValidateIf(isMoreThanNull)
  @IsLimits()
  limits?: LimitsJson | null
}

/** Of limits that were judged to be right. */
export function readLimits({
  requests_per_minute: requestsPerMinute,
  retention: text,
  max_messages: maxMessages,
}: LimitsJson): AccountLimits {
  const retention = text === undefined ? null : parseRetention(text)
  return {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(retention === null ? {} : { retention }),
    ...(maxMessages === undefined ? {} : { maxMessages }),
  }
}

const RULES: Readonly<Record<string, (value: unknown) => boolean>> = {
  requests_per_minute: (value) => isWhole(value, MOST_REQUESTS_PER_MINUTE),
  retention: (value) => typeof value === 'string' && parseRetention(value) !== null,
  max_messages: (value) => isWhole(value, MOST_MESSAGES),
}

function IsLimits(): PropertyDecorator {
  return ValidateBy({
    name: 'isLimits',
    validator: {
      validate: areLimits,
      defaultMessage: () =>
        `limits must be an object of requests_per_minute (1 to ${MOST_REQUESTS_PER_MINUTE}), ` +
        `retention ("1m" to "30d") and max_messages (1 to ${MOST_MESSAGES}), each where it is not the plan's`,
    },
  })
}

function areLimits(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(value).every(
    ([name, limit]) => Object.hasOwn(RULES, name) && RULES[name]?.(limit) === true,
  )
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most
}
