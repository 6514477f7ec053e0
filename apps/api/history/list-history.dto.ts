import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator'
import { FromDigits } from '../http/query-values.js'

/** The query of GET /v1/inboxes/{id}/history. */
export class ListHistory {
  @FromDigits()
  @Min(1, { message: 'limit must be at least 1' })
  @Max(100, { message: 'limit must be at most 100' })
  @IsInt({ message: 'limit must be a whole number' })
  limit: number = 25

  @IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  order: 'asc' | 'desc' = 'asc'

  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
