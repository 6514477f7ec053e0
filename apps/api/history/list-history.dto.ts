import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { FromDigits } from '../http/query-values.js'

/** The query of GET /v1/inboxes/{id}/history. */
export class ListHistory {
  @Says('How many a page has at most.')
  @FromDigits()
  @Min(1, { message: 'limit must be at least 1' })
  @Max(100, { message: 'limit must be at most 100' })
  @IsInt({ message: 'limit must be a whole number' })
  limit: number = 25

  @Says('Oldest or newest first.')
  @IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  order: 'asc' | 'desc' = 'asc'

  @Says('Where to go on: what `Link` or `Mayfly-Cursor` has.')
  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
