import { applyDecorators } from '@nestjs/common'
import { IsOptional, IsString, MaxLength } from 'class-validator'
import { IsCursor, IsLimit, IsOrder, IsTimeLimit } from '../http/list-pages.js'
import { readTime } from '../http/rules.js'
import { DescribeProperty } from '../openapi/describe.js'

function IsFilter(form: string, maxLength: number, about: string, examples?: string[]): PropertyDecorator {
  return applyDecorators(
    DescribeProperty(about, examples && { examples }),
    IsOptional(),
    MaxLength(maxLength, { message: `$property must be ${form}` }),
    IsString({ message: '$property must be sent once' }),
  )
}

/** The filters of a list of changes or events of the account. */
export class ListActivity {
  @IsLimit({ max: 1_000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string

  @IsFilter('an id', 40, 'The id of who did it.')
  actor?: string

  @IsFilter('a type', 100, 'A type, or its first part, such as `member`.', ['member'])
  type?: string

  @IsFilter('the name of an environment', 64, 'An environment.')
  environment?: string

  @IsFilter('an id', 40, 'The id of what was changed.')
  subject?: string

  @IsTimeLimit('Only those at this time or later (RFC 3339).')
  from?: string

  @IsTimeLimit('Only those before this time (RFC 3339).')
  to?: string
}

/** Whether an action has the type, or begins with its words. */
export function isOfType(action: string, type: string | undefined): boolean {
  return (
    type === undefined ||
    action === type ||
    [`${type}.`, `${type}-`].some((start) => action.startsWith(start))
  )
}

interface Filtered {
  type: string
  actor: string | null
  environment: string | null
  subject: string
  time: Date
}

export function isMatch({ type, actor, environment, subject, time }: Filtered, query: ListActivity): boolean {
  return (
    isOfType(type, query.type) &&
    (query.actor === undefined || query.actor === actor) &&
    (query.environment === undefined || query.environment === environment) &&
    (query.subject === undefined || query.subject === subject) &&
    (query.from === undefined || time >= readTime(query.from)) &&
    (query.to === undefined || time < readTime(query.to))
  )
}
