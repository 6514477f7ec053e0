import { ArrayMaxSize, IsArray, IsIn, IsInt, IsOptional, IsString, Matches, Max, Min } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { FromDigits, Repeatable } from '../http/query-values.js'

/** The query of GET /v1/inboxes. */
export class ListInboxes {
  @Says('In which state they are.')
  @IsIn(['active', 'deleted', 'expired'], { message: 'state must be active, deleted or expired' })
  state: 'active' | 'deleted' | 'expired' = 'active'

  @Says('`<name>:<value>` that they must have; of several all must hold.', {
    examples: [['run:42']],
  })
  @IsOptional()
  @Repeatable()
  @IsArray()
  @ArrayMaxSize(16, { message: 'label may come 16 times' })
  @Matches(/^[^:]{1,64}:[\s\S]{0,128}$/u, { each: true, message: 'label must be <name>:<value>' })
  label?: string[]

  @Says('How many a page has at most.')
  @FromDigits()
  @Min(1, { message: 'limit must be at least 1' })
  @Max(1000, { message: 'limit must be at most 1000' })
  @IsInt({ message: 'limit must be a whole number' })
  limit: number = 25

  @Says('Oldest or newest first.')
  @IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  order: 'asc' | 'desc' = 'desc'

  @Says('Where the list goes on: what `Link` has.')
  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
