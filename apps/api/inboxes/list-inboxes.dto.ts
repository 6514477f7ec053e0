import { IsIn, IsOptional } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { AreLabelFilters } from './labels.js'

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
