import { ArrayMaxSize, IsArray, IsIn, IsInt, IsOptional, IsString, Matches, Max, Min } from 'class-validator'
import { FromDigits, Repeatable } from '../http/query-values.js'

/** The query of GET /v1/inboxes. */
export class ListInboxes {
  @IsIn(['active', 'deleted', 'expired'], { message: 'state must be active, deleted or expired' })
  state: 'active' | 'deleted' | 'expired' = 'active'

  @IsOptional()
  @Repeatable()
  @IsArray()
  @ArrayMaxSize(16, { message: 'label may come 16 times' })
  @Matches(/^[^:]{1,64}:.{0,128}$/su, { each: true, message: 'label must be <name>:<value>' })
  label?: string[]

  @FromDigits()
  @Min(1, { message: 'limit must be at least 1' })
  @Max(1000, { message: 'limit must be at most 1000' })
  @IsInt({ message: 'limit must be a whole number' })
  limit: number = 25

  @IsIn(['asc', 'desc'], { message: 'order must be asc or desc' })
  order: 'asc' | 'desc' = 'desc'

  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
