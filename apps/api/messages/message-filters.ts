import { applyDecorators } from '@nestjs/common'
import { IsBoolean, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator'
import { DescribeProperty } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { FromDigits, FromTrueOrFalse } from '../http/validation.js'
import type { ParsedMail } from '#libs/mail/message.js'
import type { MessageId } from '#libs/domain/ids/typeid.js'

const MAX_CHARACTERS = 1_000

function IsPattern(): PropertyDecorator {
  const message = `$property may have at most ${MAX_CHARACTERS} characters`
  return applyDecorators(
    IsOptional(),
    IsString({ message: '$property must be sent once' }),
    MaxLength(MAX_CHARACTERS, { message }),
  )
}

/** Filters that a message must match, all of them, whatever the case of letters. */
export class MatchFilters {
  @DescribeProperty('What the subject must contain, in either case.')
  @IsPattern()
  subject?: string

  @DescribeProperty("What the sender's address or name must contain, in either case.")
  @IsPattern()
  sender?: string

  @DescribeProperty('What the recipient must contain, in either case.')
  @IsPattern()
  recipient?: string

  @DescribeProperty('What the text, or the visible text of the HTML, must contain, in either case.')
  @IsPattern()
  text?: string

  @DescribeProperty('Whether it must have a one-time code, or must not.')
  @IsOptional()
  @FromTrueOrFalse()
  @IsBoolean({ message: 'has_code must be true or false' })
  has_code?: boolean

  @DescribeProperty('Whether it must have a link, or must not.')
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
  @IsLimit({ max: 100 })
  limit: number = 25
}

/** The query of GET /v1/inboxes/{id}/messages/wait. */
export class WaitForMessage extends MessageSelection {
  /** Seconds: proxies and clients seldom give up a silent request before a minute. */
  @DescribeProperty('Seconds to wait for a message.')
  @FromDigits()
  @Min(0, { message: 'timeout must be at least 0' })
  @Max(55, { message: 'timeout must be at most 55' })
  @IsInt({ message: 'timeout must be a whole number of seconds' })
  timeout: number = 25
}

/** The query of GET /v1/inboxes/{id}/messages/{message_id}. */
export class ReadMessage {
  @DescribeProperty('Whether the source comes along.')
  @FromTrueOrFalse()
  @IsBoolean({ message: 'raw must be true or false' })
  raw: boolean = true
}

/** Whether a mail matches all filters, whatever the case of letters. */
export async function matches(mail: ParsedMail, filters: MatchFilters): Promise<boolean> {
  return mismatchesInHead(mail, filters).next().done === true && (await hasText(mail, filters))
}

/** In words, each filter that a mail does not match. */
export async function mismatches(mail: ParsedMail, filters: MatchFilters): Promise<string[]> {
  const found = [...mismatchesInHead(mail, filters)]
  if (!(await hasText(mail, filters))) found.push(lacking('text', filters.text))
  return found
}

/** All but the text, which may be long. */
function* mismatchesInHead(mail: ParsedMail, filters: MatchFilters): Generator<string, void> {
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

/** Characters searched at once. Other requests run in between. */
const PIECE = 256 * 1024
/** The lower case of a letter may depend on others this near: Σ is ς at the end of a word. */
const AROUND = 64

/** Whether a text includes the needle, which is in lower case. */
async function includes(text: string | null, needle: string): Promise<boolean> {
  if (text === null) return false
  if (text.length <= PIECE) return text.toLowerCase().includes(needle)
  for (let at = 0; at < text.length; at += PIECE) {
    const piece = text.slice(Math.max(at - AROUND, 0), at + PIECE + needle.length + AROUND)
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

function has(what: 'code' | 'link', isThere: boolean): string {
  return isThere ? `there is a ${what}` : `there is no ${what}`
}

/** A message that was looked at and did not match. */
export interface NearMiss {
  id: MessageId
  subject: string | null
  receivedAt: Date
  offset: number
  /** In words, each filter that it does not match. */
  mismatches: readonly string[]
}

const MAX_NEAREST = 5

/** The nearest messages with one more considered: those with the fewest mismatches first, and newer ones before older. */
export function nearestWith(nearest: readonly NearMiss[], miss: NearMiss): readonly NearMiss[] {
  const index = nearest.findIndex((other) => isNearer(miss, other))
  if (index < 0) return nearest.length < MAX_NEAREST ? [...nearest, miss] : nearest
  return nearest.toSpliced(index, 0, miss).slice(0, MAX_NEAREST)
}

function isNearer(one: NearMiss, other: NearMiss): boolean {
  const further = one.mismatches.length - other.mismatches.length
  return further === 0 ? one.offset > other.offset : further < 0
}
