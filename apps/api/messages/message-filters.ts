import { applyDecorators } from '@nestjs/common'
import { IsBoolean, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator'
import type { MessageId } from '#libs/domain/ids/typeid.js'
import type { ParsedMail } from '#libs/mail/message.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { FromDigits, FromTrueOrFalse } from '../http/validation.js'
import { DescribeProperty } from '../openapi/describe.js'

/*
 * The queries of the handlers that read messages, and how mail is matched against their filters.
 */

const MAX_CHARACTERS = 1_000

function IsPattern(): PropertyDecorator {
  const message = `$property may have at most ${MAX_CHARACTERS} characters`
  return applyDecorators(
    IsOptional(),
    IsString({ message: '$property must be sent once' }),
    MaxLength(MAX_CHARACTERS, { message }),
  )
}

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

/** The query of GET /v1/inboxes/{id}/messages/{message_id}. */
export class ReadMessage {
  @DescribeProperty('Whether the answer includes the source.')
  @FromTrueOrFalse()
  @IsBoolean({ message: 'raw must be true or false' })
  raw: boolean = true
}

/** Whether a mail matches all filters. */
export async function matches(mail: ParsedMail, filters: MatchFilters): Promise<boolean> {
  return mismatchesExceptText(mail, filters).next().done === true && (await hasText(mail, filters))
}

/** A sentence for each filter that a mail does not match. */
export async function mismatches(mail: ParsedMail, filters: MatchFilters): Promise<string[]> {
  const found = [...mismatchesExceptText(mail, filters)]
  if (!(await hasText(mail, filters))) found.push(lacking('text', filters.text))
  return found
}

/** All filters except `text`, since the text may be long. */
function* mismatchesExceptText(mail: ParsedMail, filters: MatchFilters): Generator<string, void> {
  const { subject, sender, recipient, has_code: hasCode, has_link: hasLink } = filters
  const senders = mail.from.flatMap(({ name, address }) => [name, address])
  if (!contains(subject, [mail.subject])) yield lacking('subject', subject)
  if (!contains(sender, [mail.sender, ...senders])) yield lacking('sender', sender)
  if (!contains(recipient, [mail.recipient])) yield lacking('recipient', recipient)
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
    await new Promise(setImmediate)
  }
  return false
}

function contains(wanted: string | undefined, texts: readonly (string | null)[]): boolean {
  if (wanted === undefined) return true
  const needle = wanted.toLowerCase()
  return texts.some((text) => text?.toLowerCase().includes(needle) === true)
}

function lacking(name: string, wanted: string | undefined): string {
  return `${name} does not contain ${JSON.stringify(wanted)}`
}

function has(what: 'code' | 'link', isPresent: boolean): string {
  return isPresent ? `there is a ${what}` : `there is no ${what}`
}

/** A message that did not match. */
export interface NearMiss {
  id: MessageId
  subject: string | null
  receivedAt: Date
  offset: number
  /** A sentence for each filter that it does not match. */
  mismatches: readonly string[]
}

const MAX_NEAREST = 5

/** Adds a message to the nearest ones: first those with the fewest mismatches, of these the newest first. */
export function addNearest(nearest: readonly NearMiss[], miss: NearMiss): readonly NearMiss[] {
  const index = nearest.findIndex((other) => isNearer(miss, other))
  if (index < 0) return nearest.length < MAX_NEAREST ? [...nearest, miss] : nearest
  return nearest.toSpliced(index, 0, miss).slice(0, MAX_NEAREST)
}

function isNearer(one: NearMiss, other: NearMiss): boolean {
  const further = one.mismatches.length - other.mismatches.length
  return further === 0 ? one.offset > other.offset : further < 0
}
