import { IsIn, IsInt, IsOptional, Min } from 'class-validator'
import { SCOPES, type Scope } from '#libs/domain/account/access.js'
import { DEFAULT_KEY_DAYS, MAX_KEY_DAYS } from '#libs/domain/account/key-expiry.js'
import { IsName } from '../accounts/account-requests.dto.js'
import { IsEnvironment, IsGrace, IsSetOf, IsTime, readTime } from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

const KEY_OWNERS = ['service', 'personal'] as const
const SCOPE_LIST = `scopes must be an array of one or more of ${SCOPES.join(', ')}, each once`
const EXAMPLE_TIME = { examples: ['2030-01-01T00:00:00Z'] }
const RATE_LIMIT = 'rate_limit must be a whole number of requests per minute, at least 1'

@DescribeBody({
  description: 'A new API key.',
  example: { name: 'CI', environment: 'staging', scopes: ['inboxes'] },
})
export class IssueKey {
  @DescribeProperty('A name to show to people.')
  @IsName()
  name!: string

  @DescribeProperty(
    'The environment that the key belongs to: a lower-case letter, then up to 31 lower-case letters, digits and hyphens.',
    { examples: ['staging'] },
  )
  @IsEnvironment()
  environment!: string

  @DescribeProperty('The scopes of the key. The scope `operator` can only be given by a key that has it.')
  @IsSetOf((options) => IsIn(SCOPES, options), SCOPES.length, SCOPE_LIST)
  scopes: Scope[] = ['inboxes']

  @DescribeProperty(
    'Whether it belongs to the account, or to the member who is signed in. A personal key ends with the membership.',
  )
  @IsIn(KEY_OWNERS, { message: 'owner must be service or personal' })
  owner: (typeof KEY_OWNERS)[number] = 'service'

  @DescribeProperty("The maximum requests per minute, if it is less than the account's.")
  @IsOptional()
  @Min(1, { message: RATE_LIMIT })
  @IsInt({ message: RATE_LIMIT })
  rate_limit?: number | null

  @DescribeProperty(
    `When the key expires, at most ${MAX_KEY_DAYS} days from now; null for a key that never expires. Default: in ${DEFAULT_KEY_DAYS} days.`,
    EXAMPLE_TIME,
  )
  @IsOptional()
  @IsTime()
  expires_at?: string | null
}

@DescribeBody({ description: 'How to replace the secret of a key.', example: { grace: '1h' } })
export class RotateKey {
  @DescribeProperty(
    'How long the former secret stays valid, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`, `w`.',
  )
  @IsGrace()
  grace: string = '0'

  @DescribeProperty(
    `When the key expires from now on, at most ${MAX_KEY_DAYS} days from now; null if it never expires. Default: unchanged.`,
    EXAMPLE_TIME,
  )
  @IsOptional()
  @IsTime()
  expires_at?: string | null
}

/** Undefined if none was given. */
export function readExpiry({ expires_at: text }: Pick<RotateKey, 'expires_at'>): Date | null | undefined {
  return typeof text === 'string' ? readTime(text) : text
}
