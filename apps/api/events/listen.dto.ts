import { IsOptional, IsString } from 'class-validator'

/** The query of GET /v1/inboxes/{id}/events. */
export class Listen {
  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
