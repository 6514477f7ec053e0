import { applyDecorators } from '@nestjs/common'
import { IsBoolean, IsString, MaxLength } from 'class-validator'
import { isId } from '#libs/domain/ids/typeid.js'
import { parseLifespan } from '#libs/domain/inbox/new-inbox.js'
import { MAX_NAME_CHARACTERS } from '#libs/mail/domain-name.js'
import { IfGiven, IsEnvironment, Rule } from '../http/rules.js'
import { isLabels, LABELS_FORM } from '../inboxes/inbox-requests.dto.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'
import { DomainCatchAll, type CatchAllJson } from './domain-schemas.js'

const NAME = `name must be a string of at most ${MAX_NAME_CHARACTERS} characters`

/** The body of POST /v1/domains. */
@DescribeBody({
  description: 'A new domain: one of your own, by its `name`, or a hosted one.',
  example: { name: 'staging.example.com', environment: 'staging', catch_all: { action: 'create' } },
  variants: {
    OwnDomain: { description: 'A domain of your own.', required: ['name'] },
    HostedDomain: {
      description: 'A new name below the mail domain, which needs no DNS records.',
      required: ['hosted'],
    },
  },
})
export class CreateDomain {
  @DescribeProperty(
    'The domain, in Unicode or as A-labels. Not a public suffix such as `co.uk`, and not the mail domain of Mayfly.',
    { examples: ['staging.example.com'] },
  )
  @IfGiven()
  @IsString({ message: NAME })
  @MaxLength(MAX_NAME_CHARACTERS, { message: NAME })
  name?: string

  @DescribeProperty('Whether Mayfly makes a name below its mail domain, verified at once.')
  @IfGiven()
  @IsBoolean({ message: 'hosted must be true or false' })
  hosted?: boolean

  @DescribeProperty("The environment whose inboxes receive the mail. Default: the key's environment.", {
    examples: ['staging'],
  })
  @IfGiven()
  @IsEnvironment()
  environment?: string

  @DescribeProperty('Whether the domain includes all its subdomains. They need an MX record `*.<domain>`.')
  @IfGiven()
  @IsBoolean({ message: 'subdomains must be true or false' })
  subdomains?: boolean

  @DescribeProperty(
    'What becomes of mail to an address without an inbox. Default: `create` for a hosted domain, else `reject`.',
  )
  @IsCatchAll()
  catch_all?: CatchAllJson
}

/** The body of PATCH /v1/domains/{id}. At least one property is required. */
@DescribeBody({
  description: 'What to change of a domain.',
  example: { catch_all: { action: 'create', duration: '2h' } },
  minProperties: 1,
})
export class ChangeDomain {
  @DescribeProperty('Whether the domain includes all its subdomains. The records are then checked again.')
  @IfGiven()
  @IsBoolean({ message: 'subdomains must be true or false' })
  subdomains?: boolean

  @DescribeProperty('What becomes of mail to an address without an inbox.')
  @IsCatchAll()
  catch_all?: CatchAllJson
}

const FIELDS = { reject: [], create: ['duration', 'labels'], deliver: ['inbox_id'] } as const

function IsCatchAll(): PropertyDecorator {
  return applyDecorators(
    IfGiven(),
    Rule(
      'isCatchAll',
      (value) => errorIn(value) === null,
      (value) => `catch_all ${errorIn(value)}`,
      DomainCatchAll,
    ),
  )
}

function errorIn(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be an object'
  const { action, inbox_id, duration, labels } = value as Record<string, unknown>
  if (action !== 'reject' && action !== 'create' && action !== 'deliver') {
    return 'must have an action: reject, create or deliver'
  }
  const known: readonly string[] = ['action', ...FIELDS[action]]
  const unknown = Object.keys(value).find((name) => !known.includes(name))
  if (unknown !== undefined) return `of the action ${action} must not have ${unknown.slice(0, 60)}`
  if (duration !== undefined && (typeof duration !== 'string' || parseLifespan(duration) === null)) {
    return 'must have a duration such as "30m", "24h" or "7d"'
  }
  if (labels !== undefined && !isLabels(labels)) return `must have labels that are ${LABELS_FORM}`
  if (action === 'deliver' && (typeof inbox_id !== 'string' || !isId('inb', inbox_id))) {
    return 'must have the inbox_id of an inbox'
  }
  return null
}
