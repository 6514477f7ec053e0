import { applyDecorators } from '@nestjs/common'
import { IsIn, IsOptional, IsString, Matches, MaxLength } from 'class-validator'
import { ENVIRONMENT } from '#libs/domain/account/access.js'
import {
  PERMISSIONS,
  ROLE_NAMES,
  rulesOf,
  type MemberAccess,
  type Role,
} from '#libs/domain/account/member.js'
import { IfGiven, IsSetOf } from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

const MAX_ENVIRONMENTS = 50
/** A valid email address as in the HTML standard, "Email state". */
const EMAIL =
  /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/
/** RFC 5321, section 4.5.3.1.3, without the angle brackets. */
const MAX_EMAIL_CHARACTERS = 254

export function isEmail(text: string): boolean {
  return text.length <= MAX_EMAIL_CHARACTERS && EMAIL.test(text)
}

const DAYS = /^([1-9]|[12][0-9]|30)d$/

function IsRole(): PropertyDecorator {
  return applyDecorators(
    IsIn(ROLE_NAMES, { message: `role must be one of ${ROLE_NAMES.join(', ')}` }),
    DescribeProperty('What the member may do, as in docs/teams.md. Only an owner can give the role `owner`.'),
  )
}

function IsEnvironments(): PropertyDecorator {
  const message = `environments must be null, or 1 to ${MAX_ENVIRONMENTS} names of environments, each once`
  return applyDecorators(
    IsOptional(),
    IsSetOf((options) => Matches(ENVIRONMENT, options), MAX_ENVIRONMENTS, message),
    DescribeProperty(
      'The only environments that the member can use, or null for all. Not for an `owner` or an `admin`.',
    ),
  )
}

function IsPermissions(): PropertyDecorator {
  const message = `permissions must be an array of ${PERMISSIONS.join(', ')}, each once`
  return applyDecorators(
    IfGiven(),
    IsSetOf((options) => IsIn(PERMISSIONS, options), PERMISSIONS.length, message, 0),
    DescribeProperty(
      '`content:read` allows the member to read mail. An `admin` has it unless it is left out here, an `auditor` only if it is given, all others always.',
    ),
  )
}

function IsValidity(): PropertyDecorator {
  return applyDecorators(
    Matches(DAYS, { message: 'expires_in must be a number of days from "1d" to "30d"' }),
    DescribeProperty('How long the link is valid: 1 to 30 days.'),
  )
}

/** The body of POST /v1/invitations. */
@DescribeBody({
  description: 'Whom to invite, and what the new member may do.',
  example: { email: 'ana@example.com', role: 'developer' },
})
export class InviteMember {
  @DescribeProperty('The email address.', { examples: ['ana@example.com'] })
  @IsString({ message: 'email must be a string' })
  @MaxLength(MAX_EMAIL_CHARACTERS, { message: `email may have at most ${MAX_EMAIL_CHARACTERS} characters` })
  @Matches(EMAIL, { message: 'email must be an email address, such as ana@example.com' })
  email!: string

  @IsRole()
  role!: Role

  @IsEnvironments()
  environments?: string[] | null

  @IsPermissions()
  permissions?: (typeof PERMISSIONS)[number][]

  @IsValidity()
  expires_in: string = '7d'
}

/** The body of POST /v1/invitations/{id}/resend. */
@DescribeBody({ description: 'How long the new link is valid.', example: { expires_in: '7d' } })
export class ResendInvitation {
  @IsValidity()
  expires_in: string = '7d'
}

/** The body of PATCH /v1/members/{id}. At least one property is required. */
@DescribeBody({
  description: 'What the member may do from now on.',
  example: { role: 'viewer' },
  minProperties: 1,
})
export class ChangeMember {
  @IfGiven()
  @IsRole()
  role?: Role

  @IsEnvironments()
  environments?: string[] | null

  @IsPermissions()
  permissions?: (typeof PERMISSIONS)[number][]
}

/** The access of a new member, or of one that has the access `before`. With another role, it has the default permissions. */
export function readAccess(
  role: Role,
  { environments, permissions }: Omit<ChangeMember, 'role'>,
  before: MemberAccess | null = null,
): MemberAccess {
  const rules = rulesOf(role)
  const unchanged = rules.isRestrictable ? (before?.environments ?? null) : null
  const byDefault = before?.role === role ? before.readsMail : rules.readsMail !== 'if given'
  return {
    role,
    environments: environments === undefined ? unchanged : environments,
    readsMail: permissions === undefined ? byDefault : permissions.includes('content:read'),
  }
}
