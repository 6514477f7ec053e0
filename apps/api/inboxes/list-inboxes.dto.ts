import { ArrayMaxSize, IsArray, IsIn, IsOptional, Matches } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-parameters.js'
import { Repeatable } from '../http/query-values.js'

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

  @IsLimit({ most: 1000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}
