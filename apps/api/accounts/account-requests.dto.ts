import { IsOptional, IsString, MaxLength } from 'class-validator'
import {
  MAX_RETENTION,
  MAX_MESSAGES,
  MAX_REQUESTS_PER_MINUTE,
  parseRetention,
  type AccountLimits,
} from '#libs/domain/account/access.js'
import { UNIT_MS } from '#libs/domain/inbox/new-inbox.js'
import { IfGiven, Rule, durationPattern } from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

const MAX_CHARACTERS = 200

/** A name as JSON Schema. */
export const NAME_SCHEMA = { type: 'string', minLength: 1, maxLength: MAX_CHARACTERS, pattern: '\\S' }

/** A name: 1 to 200 characters of Unicode text, without lone surrogates. */
export function IsName(): PropertyDecorator {
  return Rule('isName', isName, `$property must be a string of 1 to ${MAX_CHARACTERS} characters`)
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || !value.isWellFormed()) return false
  return value.trim() !== '' && Array.from(value).length <= MAX_CHARACTERS
}

/** The limits in a body. */
interface LimitsJson {
  requests_per_minute?: number
  retention?: string
  max_messages?: number
}

const OWN_LIMITS = "The account's own limits, on a plan with limits per account."

const LIMITS_SCHEMA = {
  $id: 'AccountLimits',
  description: "The account's own limits. For a limit that is left out, the plan's applies.",
  type: 'object',
  properties: {
    requests_per_minute: { type: 'integer', minimum: 1, maximum: MAX_REQUESTS_PER_MINUTE },
    retention: {
      type: 'string',
      pattern: `^${durationPattern(UNIT_MS, MAX_RETENTION.ms)}$`,
      examples: ['7d'],
    },
    max_messages: { type: 'integer', minimum: 1, maximum: MAX_MESSAGES },
  },
  additionalProperties: false,
}

/** The body of POST /v1/accounts. */
@DescribeBody({ description: 'A new account.', example: { name: 'Example Ltd', plan: 'pro' } })
export class OpenAccount {
  @DescribeProperty('A name to show to people.', NAME_SCHEMA)
  @IsName()
  name!: string

  @DescribeProperty('The name of a configured plan.', { examples: ['pro'] })
  @MaxLength(32, { message: 'plan must be the name of a plan' })
  @IsString({ message: 'plan must be the name of a plan' })
  plan!: string

  @DescribeProperty(OWN_LIMITS, LIMITS_SCHEMA)
  @IsOptional()
  @IsLimits()
  limits?: LimitsJson | null
}

/** The body of PATCH /v1/accounts/{id}. At least one property is required. */
@DescribeBody({
  description: 'What to change of an account.',
  example: { plan: 'enterprise' },
  minProperties: 1,
})
export class ChangeAccount {
  @DescribeProperty('The name of a configured plan.', { examples: ['enterprise'] })
  @IfGiven()
  @MaxLength(32, { message: 'plan must be the name of a plan' })
  @IsString({ message: 'plan must be the name of a plan' })
  plan?: string

  @DescribeProperty(`${OWN_LIMITS} Null for the limits of the plan.`, LIMITS_SCHEMA)
  @IsOptional()
  @IsLimits()
  limits?: LimitsJson | null
}

/** The limits of a validated body. */
export function readLimits(limits: LimitsJson): AccountLimits {
  const { requests_per_minute: requestsPerMinute, retention: text, max_messages: maxMessages } = limits
  const retention = text === undefined ? null : parseRetention(text)
  return {
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(retention !== null && { retention }),
    ...(maxMessages !== undefined && { maxMessages }),
  }
}

const RULES: Readonly<Record<string, (value: unknown) => boolean>> = {
  requests_per_minute: (value) => isCount(value, MAX_REQUESTS_PER_MINUTE),
  retention: (value) => typeof value === 'string' && parseRetention(value) !== null,
  max_messages: (value) => isCount(value, MAX_MESSAGES),
}

function IsLimits(): PropertyDecorator {
  return Rule(
    'isLimits',
    areLimits,
    `limits must be an object of requests_per_minute (1 to ${MAX_REQUESTS_PER_MINUTE}), ` +
      `retention ("1m" to "30d") and max_messages (1 to ${MAX_MESSAGES}), each of them optional`,
  )
}

function areLimits(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.entries(value).every(
    ([name, limit]) => Object.hasOwn(RULES, name) && RULES[name]?.(limit) === true,
  )
}

function isCount(value: unknown, max: number): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max
}
