import { setImmediate as nextTurn } from 'node:timers/promises'
import { applyDecorators } from '@nestjs/common'
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
} from 'class-validator'
import type { OpenedMessage } from '#libs/mail/json/message-json.js'
import type { Mailbox, ParsedMail } from '#libs/mail/message.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import {
  FromDigits,
  FromTrueOrFalse,
  IfGiven,
  IsTime,
  IsWholeNumber,
  readTime,
  Repeatable,
  TIME_SCHEMA,
} from '../http/rules.js'
import { AreLabelFilters } from '../inboxes/inbox-requests.dto.js'
import { DescribeProperty } from '../openapi/describe.js'

/*
 * The queries of the handlers that read messages, and how mail is matched against their filters.
 */

const MAX_CHARACTERS = 1_000
const MAX_HEADERS = 16
/** `header` in a query: `<name>:<text>`. A field's name has no colon (RFC 5322, section 2.2). */
const HEADER = /^([!-9;-~]{1,200}):([\s\S]{0,1000})$/u

function IsPattern(): PropertyDecorator {
  const message = `$property may have at most ${MAX_CHARACTERS} characters`
  return applyDecorators(
    IsOptional(),
    IsString({ message: '$property must be sent once' }),
    MaxLength(MAX_CHARACTERS, { message }),
  )
}

/** `label`, repeatable: filters by the labels of the inbox. */
export function IsLabelOfInbox(): PropertyDecorator {
  const description = 'A label `<name>:<value>` that the inbox must have. Repeat to require several labels.'
  return applyDecorators(
    DescribeProperty(description, { examples: [['run:42']] }),
    IsOptional(),
    AreLabelFilters(),
  )
}

const COUNT_MODES = ['at_least', 'exactly'] as const
export type CountMode = (typeof COUNT_MODES)[number]

/** Filters of messages. A message must match all of them. Upper and lower case are the same. */
export class MatchFilters {
  @DescribeProperty('Text that the subject must contain, in upper or lower case.')
  @IsPattern()
  subject?: string

  @DescribeProperty("Text that the sender's address or name must contain, in upper or lower case.")
  @IsPattern()
  sender?: string

  @DescribeProperty('Text that the recipient must contain, in upper or lower case.')
  @IsPattern()
  recipient?: string

  @DescribeProperty(
    'Text that the text part, or the visible text of the HTML, must contain, in upper or lower case.',
  )
  @IsPattern()
  text?: string

  @DescribeProperty('Text that an address or a name in `to` must contain, in upper or lower case.')
  @IsPattern()
  to?: string

  @DescribeProperty(
    'A header `<name>:<text>`: a header of that name must contain the text, in upper or lower case. Without a text, ' +
      'the message must have the header. Repeat to require several headers.',
    { examples: [['X-Campaign:spring']] },
  )
  @IsOptional()
  @Matches(HEADER, { each: true, message: 'header must be <name>:<text>' })
  @ArrayMaxSize(MAX_HEADERS, { message: `header may be sent at most ${MAX_HEADERS} times` })
  @IsArray({ message: 'header must be given' })
  @Repeatable()
  header?: string[]

  @DescribeProperty('The earliest `received_at` (RFC 3339).', TIME_SCHEMA)
  @IfGiven()
  @IsTime()
  since?: string

  @DescribeProperty('The end of the time in which it was received, exclusive (RFC 3339).', TIME_SCHEMA)
  @IfGiven()
  @IsTime()
  until?: string

  @DescribeProperty('`true`: it must have a one-time code. `false`: it must not.')
  @IsOptional()
  @FromTrueOrFalse()
  @IsBoolean({ message: 'has_code must be true or false' })
  has_code?: boolean

  @DescribeProperty('`true`: it must have a link. `false`: it must not.')
  @IsOptional()
  @FromTrueOrFalse()
  @IsBoolean({ message: 'has_link must be true or false' })
  has_link?: boolean
}

/** Filters, with an order and a position to start from. */
class MessageSelection extends MatchFilters {
  @IsOrder()
  order: 'asc' | 'desc' = 'asc'

  @IsCursor('The position to continue from, as in `Link` or `Mayfly-Cursor`.')
  cursor?: string
}

/** The query of GET /v1/inboxes/{id}/messages. */
export class ListMessages extends MessageSelection {
  @IsLimit({ max: 100 })
  limit: number = 25
}

/** The query of GET /v1/messages. */
export class ListEnvironmentMessages extends ListMessages {
  @IsLabelOfInbox()
  label?: string[]
}

/** The query of GET /v1/inboxes/{id}/messages/wait. */
export class WaitForMessage extends MessageSelection {
  /** In seconds. Less than a minute, after which some proxies and clients abort a request without an answer. */
  @DescribeProperty('Seconds to wait for a message.')
  @FromDigits()
  @Min(0, { message: 'timeout must be at least 0' })
  @Max(55, { message: 'timeout must be at most 55' })
  @IsInt({ message: 'timeout must be a whole number of seconds' })
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
  @FromTrueOrFalse()
  @IsBoolean({ message: 'raw must be true or false' })
  raw: boolean = true
}

type Matchable = Pick<OpenedMessage, 'mail' | 'receivedAt'>

/** Whether a message matches all filters. */
export async function matches(message: Matchable, filters: MatchFilters): Promise<boolean> {
  return mismatchesExceptText(message, filters).next().done === true && (await hasText(message.mail, filters))
}

/** A sentence for each filter that a message does not match. */
export async function mismatches(message: Matchable, filters: MatchFilters): Promise<string[]> {
  const found = [...mismatchesExceptText(message, filters)]
  if (!(await hasText(message.mail, filters))) found.push(lacking('text', filters.text))
  return found
}

/** Whether a message was received in the time that the filters name, which is known before it is opened. */
export function isReceivedInTime(receivedAt: Date, { since, until }: MatchFilters): boolean {
  return !isBefore(receivedAt, since) && (until === undefined || isBefore(receivedAt, until))
}

function isBefore(time: Date, limit: string | undefined): boolean {
  return limit !== undefined && time < readTime(limit)
}

/** All filters except `text`, since the text may be long. */
function* mismatchesExceptText(
  { mail, receivedAt }: Matchable,
  filters: MatchFilters,
): Generator<string, void> {
  const { subject, sender, recipient, to, header = [], since, until } = filters
  const { has_code: hasCode, has_link: hasLink } = filters
  if (isBefore(receivedAt, since)) yield `received_at is before ${since}`
  if (until !== undefined && !isBefore(receivedAt, until)) yield `received_at is not before ${until}`
  if (!contains(subject, [mail.subject])) yield lacking('subject', subject)
  if (!contains(sender, [mail.sender, ...textsOf(mail.from)])) yield lacking('sender', sender)
  if (!contains(recipient, [mail.recipient])) yield lacking('recipient', recipient)
  if (!contains(to, textsOf(mail.to))) yield lacking('to', to)
  for (const each of header) if (!hasHeader(mail, each)) yield `there is no header ${JSON.stringify(each)}`
  if (hasCode !== undefined && hasCode !== mail.codes.length > 0) yield has('code', !hasCode)
  if (hasLink !== undefined && hasLink !== mail.links.length > 0) yield has('link', !hasLink)
}

async function hasText({ text, htmlText }: ParsedMail, { text: wanted }: MatchFilters): Promise<boolean> {
  if (wanted === undefined) return true
  const needle = wanted.toLowerCase()
  return (await includes(text, needle)) || includes(htmlText, needle)
}

/** Characters that are searched at once, before other requests run. */
const PIECE = 256 * 1024
/** The lower case of a letter may depend on this many letters around it: Σ is ς at the end of a word. */
const CONTEXT = 64

/** Whether a text includes the needle. The needle must be in lower case. */
async function includes(text: string | null, needle: string): Promise<boolean> {
  if (text === null) return false
  if (text.length <= PIECE) return text.toLowerCase().includes(needle)
  for (let at = 0; at < text.length; at += PIECE) {
    const piece = text.slice(Math.max(at - CONTEXT, 0), at + PIECE + needle.length + CONTEXT)
    if (piece.toLowerCase().includes(needle)) return true
    await nextTurn()
  }
  return false
}

function contains(wanted: string | undefined, texts: readonly (string | null)[]): boolean {
  if (wanted === undefined) return true
  const needle = wanted.toLowerCase()
  return texts.some((text) => text?.toLowerCase().includes(needle) === true)
}

function textsOf(mailboxes: readonly Mailbox[]): (string | null)[] {
  return mailboxes.flatMap(({ name, address }) => [name, address])
}

function hasHeader({ headers }: ParsedMail, wanted: string): boolean {
  const [, name = '', text = ''] = HEADER.exec(wanted) ?? []
  const named = headers.filter((header) => header.name.toLowerCase() === name.toLowerCase())
  return contains(
    text,
    named.map(({ value }) => value),
  )
}

function lacking(name: string, wanted: string | undefined): string {
  return `${name} does not contain ${JSON.stringify(wanted)}`
}

function has(what: 'code' | 'link', isPresent: boolean): string {
  return isPresent ? `there is a ${what}` : `there is no ${what}`
}
