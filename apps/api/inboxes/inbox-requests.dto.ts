import { IsBoolean, IsOptional, IsString, MaxLength, IsIn } from 'class-validator'
import { LONGEST_RETENTION } from '#libs/domain/account/plan.js'
import { parseLifespan, UNIT_MS } from '#libs/domain/inbox/lifespan.js'
import { IfGiven, Rule, durationPattern } from '../http/dto-values.js'
import { DescribeBody, Says } from '../openapi/describe.js'
import { InboxLabels, IsLabels, AreLabelFilters } from './labels.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'

/** The body of POST /v1/inboxes. */
@DescribeBody({
  description: 'A new inbox. Every property is optional.',
  example: { duration: '30m', name: 'sign-up', labels: { run: '42' } },
})
export class CreateInbox {
  @Says(
    'How long it lives: a whole number and one of `m`, `h`, `d`, `w`, from one minute up to the retention of the plan; ' +
      'the smaller of that and 24 hours by default.',
    {
      type: 'string',
      pattern: `^${durationPattern(UNIT_MS, LONGEST_RETENTION.ms)}$`,
      examples: ['30m', '24h', '7d', '2w'],
    },
  )
  @IfGiven()
  @IsDuration()
  duration?: string

  @Says('Whether its mail needs a password, which the answer has then.', { default: false })
  @IfGiven()
  @IsBoolean({ message: 'password_protected must be true or false' })
  password_protected?: boolean

  @Says('For people.')
  @IsOptional()
  @IsWellFormed()
  @MaxLength(200, { message: 'name must be a string of at most 200 characters' })
  @IsString({ message: 'name must be a string of at most 200 characters' })
  name?: string | null

  @Says('Labels for finding the inbox later.', InboxLabels)
  @IfGiven()
  @IsLabels()
  labels?: Record<string, string>
}

function IsDuration(): PropertyDecorator {
  return Rule(
    'isDuration',
    (value) => typeof value === 'string' && parseLifespan(value) !== null,
    '$property must be a whole number and one of m, h, d, w, and at least "1m": "30m", "24h", "7d", "2w"',
  )
}

/** A half surrogate pair is not a character, and would be answered in another form. */
function IsWellFormed(): PropertyDecorator {
  return Rule(
    'isWellFormed',
    (value) => typeof value === 'string' && value.isWellFormed(),
    '$property must be Unicode text: it holds half a surrogate pair',
  )
}

/** The query of GET /v1/inboxes. */
export class ListInboxes {
  @Says('In which state they are.')
  @IsIn(['active', 'deleted', 'expired'], { message: 'state must be active, deleted or expired' })
  state: 'active' | 'deleted' | 'expired' = 'active'

  @Says('`<name>:<value>` that they must have; of several all must hold.', {
    examples: [['run:42']],
  })
  @IsOptional()
  @AreLabelFilters()
  label?: string[]

  @IsLimit({ most: 1000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}
