import { applyDecorators } from '@nestjs/common'
import {
  ArrayMaxSize,
  IsArray,
  IsIn,
  IsOptional,
  IsString,
  Length,
  Matches,
  MaxLength,
} from 'class-validator'
import { IsAsOf } from '../audit/past-states.service.js'
import { IsCursor, IsLimit, IsOrder, IsTimeLimit } from '../http/list-pages.js'
import { FromDigits, IfGiven, IsTrueOrFalse, IsWholeNumber, Repeatable } from '../http/rules.js'
import { AreLabelFilters } from '../inboxes/inbox-requests.dto.js'
import { DescribeProperty } from '../openapi/describe.js'
import { MAX_QUERY_CHARACTERS } from './search.js'

/*
 * The queries of the handlers that read messages.
 */

const MAX_CHARACTERS = 1_000
const MAX_HEADERS = 16
/** `header` in a query: `<name>:<text>`. A field's name has no colon (RFC 5322, section 2.2). */
export const HEADER = /^([!-9;-~]{1,200}):([\s\S]{0,1000})$/u

/** A text that a message must contain. */
function Contains(what: string): PropertyDecorator {
  const message = `$property may have at most ${MAX_CHARACTERS} characters`
  return applyDecorators(
    DescribeProperty(`Text that ${what} must contain, in upper or lower case.`),
    IsOptional(),
    IsString({ message: '$property must be sent once' }),
    MaxLength(MAX_CHARACTERS, { message }),
  )
}

/** Whether a message must have something, or must not. */
function HasOne(what: string): PropertyDecorator {
  return applyDecorators(
    DescribeProperty(`\`true\`: it must have ${what}. \`false\`: it must not.`),
    IsOptional(),
    IsTrueOrFalse(),
  )
}

/** `label`, repeatable: filters by the labels of the inbox. */
export function IsLabelOfInbox(): PropertyDecorator {
  return applyDecorators(IsOptional(), AreLabelFilters('A label `<name>:<value>` that the inbox must have.'))
}

const COUNT_MODES = ['at_least', 'exactly'] as const
export type CountMode = (typeof COUNT_MODES)[number]

/** Filters of messages. A message must match all of them. Texts are compared as `comparable` makes them. */
export class MatchFilters {
  @Contains('the subject')
  subject?: string

  @Contains("the sender's address or name")
  sender?: string

  @Contains('the recipient')
  recipient?: string

  @Contains('`recipient_detail`')
  detail?: string

  @Contains('the text part, or the visible text of the HTML,')
  text?: string

  @Contains('an address or a name in `to`')
  to?: string

  @DescribeProperty(
    'A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, ' +
      'the message must have the header. Repeat to require several headers.',
    { examples: [['X-Campaign:spring']] },
  )
  @IsOptional()
  @Matches(HEADER, {
    each: true,
    message: 'header must be <name>:<text>, with a colon after the name: "X-Campaign:spring"',
  })
  @ArrayMaxSize(MAX_HEADERS, { message: `header may be sent at most ${MAX_HEADERS} times` })
  @IsArray({ message: 'header must be given' })
  @Repeatable()
  header?: string[]

  @IsTimeLimit('The earliest `received_at` (RFC 3339).')
  since?: string

  @IsTimeLimit('The end of the time in which it was received, exclusive (RFC 3339).')
  until?: string

  @HasOne('a one-time code')
  has_code?: boolean

  @HasOne('a link')
  has_link?: boolean
}

/** The longest `extract`. */
const MAX_PATTERN_CHARACTERS = 500

/** `extract`: the expression that is searched in messages. */
function IsExpression(description: string): PropertyDecorator {
  const message = `$property must have 1 to ${MAX_PATTERN_CHARACTERS} characters`
  return applyDecorators(
    DescribeProperty(
      `A regular expression in the syntax of RE2, searched in the subject, the text and the visible text. ${description}`,
      { examples: ['order ([0-9]+)'] },
    ),
    IfGiven(),
    Length(1, MAX_PATTERN_CHARACTERS, { message }),
    IsString({ message: '$property must be sent once' }),
  )
}

/** Filters, with an order and a position to start from. */
class MessageSelection extends MatchFilters {
  @IsExpression(
    'Messages then have its matches as `extracted`. A wait also requires a match; a list has all messages.',
  )
  extract?: string

  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string
}

export class ListMessages extends MessageSelection {
  @IsLimit({ max: 100 })
  limit: number = 25
}

/** The query of GET /v1/inboxes/{id}/messages. */
export class ListInboxMessages extends ListMessages {
  @IsAsOf()
  as_of?: string
}

/** The query of GET /v1/messages. */
export class ListEnvironmentMessages extends ListMessages {
  @DescribeProperty(
    'Words, "phrases" and filters such as `from:app`, `label:run:42` and `has:code`, which must all match; `-` excludes.',
    { examples: ['from:app has:code -subject:welcome'] },
  )
  @IfGiven()
  @MaxLength(MAX_QUERY_CHARACTERS, { message: `q may have at most ${MAX_QUERY_CHARACTERS} characters` })
  @IsString({ message: 'q must be sent once' })
  q?: string

  @IsLabelOfInbox()
  label?: string[]
}

/** The query of GET /v1/inboxes/{id}/messages/wait. */
export class WaitForMessage extends MessageSelection {
  /** In seconds. Less than a minute, after which some proxies and clients abort a request without an answer. */
  @DescribeProperty('Seconds to wait for a message.')
  @FromDigits()
  @IsWholeNumber(0, 55)
  timeout: number = 25
}

/** The largest `count` and `per_inbox`. */
const MAX_COUNT = 100_000_000

/** The query of GET /v1/messages/wait. */
export class WaitForEnvironmentMessage extends WaitForMessage {
  @IsLabelOfInbox()
  label?: string[]

  @DescribeProperty(
    'Wait until the inboxes of one `label` have received this number of messages, counting deleted ones. Only `mode`, ' +
      '`per_inbox` and `timeout` may be sent with it.',
  )
  @FromDigits()
  @IsWholeNumber(0, MAX_COUNT)
  count?: number

  @DescribeProperty(
    'With `count`: whether more messages are allowed. `exactly` must hold for two seconds, which may be after the `timeout`.',
    { default: 'at_least' },
  )
  @IfGiven()
  @IsIn(COUNT_MODES, { message: `mode must be one of ${COUNT_MODES.join(', ')}` })
  mode?: CountMode

  @DescribeProperty(
    'With `count`: the number of messages that each inbox must have received at least, in both modes.',
  )
  @FromDigits()
  @IsWholeNumber(1, MAX_COUNT)
  per_inbox?: number
}

/** The query of GET /v1/inboxes/{id}/messages/{message_id}. */
export class ReadMessage {
  @DescribeProperty('Whether the answer includes the source.')
  @IsTrueOrFalse()
  raw: boolean = true

  @IsExpression('The message then has its matches as `extracted`.')
  extract?: string
}
