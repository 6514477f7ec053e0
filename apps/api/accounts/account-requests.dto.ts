import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import {
  MAX_ACCOUNT_REQUESTS_PER_MINUTE,
  MAX_RETENTION,
  MAX_MESSAGES,
  MAX_REQUESTS_PER_MINUTE,
  MIN_ACCOUNT_REQUESTS_PER_MINUTE,
  type AccountLimits,
} from '#libs/domain/account/access.js'
import { perLimit } from '#libs/domain/account/quota.js'
import { codec, partial, snakeCase } from '#libs/domain/event-sourcing/declare.js'
import { UNIT_MS, type Lifespan } from '#libs/domain/inbox/new-inbox.js'
import { IfGiven, readLifespan, Rule, durationPattern } from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'
import { SIGN_INS } from './account-schemas.js'

const MAX_CHARACTERS = 200

/** A name: 1 to 200 characters of Unicode text, without lone surrogates. */
export function IsName(): PropertyDecorator {
  const schema = { type: 'string', minLength: 1, maxLength: MAX_CHARACTERS, pattern: '\\S' }
  return Rule('isName', isName, `$property must be a string of 1 to ${MAX_CHARACTERS} characters`, schema)
}

function isName(value: unknown): boolean {
  if (typeof value !== 'string' || !value.isWellFormed()) return false
  return value.trim() !== '' && Array.from(value).length <= MAX_CHARACTERS
}

const LIMITS = partial({
  requestsPerMinute: Type.Integer({ minimum: 1, maximum: MAX_REQUESTS_PER_MINUTE }),
  accountRequestsPerMinute: Type.Integer({
    minimum: MIN_ACCOUNT_REQUESTS_PER_MINUTE,
    maximum: MAX_ACCOUNT_REQUESTS_PER_MINUTE,
  }),
  retention: codec(
    Type.String({ pattern: `^${durationPattern(UNIT_MS, MAX_RETENTION.ms)}$`, examples: ['7d'] }),
    ({ text }: Lifespan) => text,
    readLifespan,
  ),
  maxMessages: Type.Integer({ minimum: 1, maximum: MAX_MESSAGES }),
  ...perLimit(({ most }) => Type.Integer({ minimum: 1, maximum: most })),
})

const QUOTA_LIMITS = Object.values(perLimit(({ limit, most }) => `${snakeCase(limit)} (1 to ${most})`))

const LIMITS_SCHEMA = {
  ...LIMITS.schema,
  $id: 'AccountLimits',
  description: "The account's own limits. For a limit that is left out, the plan's applies.",
  additionalProperties: false,
}
const LIMITS_CHECK = Compile(LIMITS_SCHEMA)

const OWN_LIMITS = "The account's own limits, on a plan with limits per account."

function IsLimits(): PropertyDecorator {
  return Rule(
    'isLimits',
    (value) => LIMITS_CHECK.Check(value),
    `limits must be an object of requests_per_minute (1 to ${MAX_REQUESTS_PER_MINUTE}), ` +
      `account_requests_per_minute (${MIN_ACCOUNT_REQUESTS_PER_MINUTE} to ${MAX_ACCOUNT_REQUESTS_PER_MINUTE}), ` +
      `retention ("1m" to "30d"), max_messages (1 to ${MAX_MESSAGES}), ` +
      `${QUOTA_LIMITS.join(', ')}, each of them optional`,
    LIMITS_SCHEMA,
  )
}

export function readLimits(limits: object): AccountLimits {
  return LIMITS.decode(limits)
}

@DescribeBody({ description: 'A new account.', example: { name: 'Example Ltd', plan: 'pro' } })
export class OpenAccount {
  @DescribeProperty('A name to show to people.')
  @IsName()
  name!: string

  @DescribeProperty('The name of a configured plan.', { examples: ['pro'] })
  @MaxLength(32, { message: 'plan must be the name of a plan' })
  @IsString({ message: 'plan must be the name of a plan' })
  plan!: string

  @DescribeProperty(OWN_LIMITS)
  @IsOptional()
  @IsLimits()
  limits?: object | null
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

  @DescribeProperty(`${OWN_LIMITS} Null for the limits of the plan.`)
  @IsOptional()
  @IsLimits()
  limits?: object | null
}

/** The body of PATCH /v1/account. */
@DescribeBody({ description: 'How people may sign in to the console.', example: { sign_in: 'any' } })
export class SetSignIn {
  @DescribeProperty('`any`: also with links and keys. `provider`: only with an identity provider.')
  @IsIn(SIGN_INS, { message: `sign_in must be one of ${SIGN_INS.join(', ')}` })
  sign_in!: (typeof SIGN_INS)[number]
}
