import { applyDecorators } from '@nestjs/common'
import { IsBoolean, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator'
import { Says } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { FromDigits, FromTrueOrFalse } from '../http/dto-values.js'

const MAX_CHARACTERS = 1_000

function IsPattern(): PropertyDecorator {
  const message = `$property may have at most ${MAX_CHARACTERS} characters`
  return applyDecorators(
    IsOptional(),
    IsString({ message: '$property must come once' }),
    MaxLength(MAX_CHARACTERS, { message }),
  )
}

/** Filters that a message must match, all of them, whatever the case of letters. */
export class MatchFilters {
  @Says('What the subject must contain, in either case.')
  @IsPattern()
  subject?: string

  @Says("What the sender's address or name must contain, in either case.")
  @IsPattern()
  sender?: string

  @Says('What the recipient must contain, in either case.')
  @IsPattern()
  recipient?: string

  @Says('What the text, or the visible text of the HTML, must contain, in either case.')
  @IsPattern()
  text?: string

  @Says('Whether it must have a one-time code, or must not.')
  @IsOptional()
  @FromTrueOrFalse()
  @IsBoolean({ message: 'has_code must be true or false' })
  has_code?: boolean

  @Says('Whether it must have a link, or must not.')
  @IsOptional()
  @FromTrueOrFalse()
  @IsBoolean({ message: 'has_link must be true or false' })
  has_link?: boolean
}

/** Which messages, from which position, and in which order. */
class MessageSelection extends MatchFilters {
  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string
}

/** The query of GET /v1/inboxes/{id}/messages. */
export class ListMessages extends MessageSelection {
  @IsLimit({ most: 100 })
  limit: number = 25
}

/** The query of GET /v1/inboxes/{id}/messages/wait. */
export class WaitForMessage extends MessageSelection {
  /** Seconds: proxies and clients seldom give up a silent request before a minute. */
  @Says('Seconds to wait for a message.')
  @FromDigits()
  @Min(0, { message: 'timeout must be at least 0' })
  @Max(55, { message: 'timeout must be at most 55' })
  @IsInt({ message: 'timeout must be a whole number of seconds' })
  timeout: number = 25
}

/** The query of GET /v1/inboxes/{id}/messages/{message_id}. */
export class ReadMessage {
  @Says('Whether the source comes along.')
  @FromTrueOrFalse()
  @IsBoolean({ message: 'raw must be true or false' })
  raw: boolean = true
}
