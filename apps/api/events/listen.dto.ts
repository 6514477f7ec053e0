import { IsOptional, IsString } from 'class-validator'
import { Says } from '../openapi/describe.js'

/** The query of GET /v1/inboxes/{id}/events. */
export class Listen {
  @Says('Where to begin, as a `Mayfly-Cursor`; now where nothing is said. `Last-Event-ID` counts before it.')
  @IsOptional()
  @IsString({ message: 'cursor must come once' })
  cursor?: string
}
