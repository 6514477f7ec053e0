import {
  IsBoolean,
  IsOptional,
  IsString,
  MaxLength,
  IsIn,
  ArrayMaxSize,
  IsArray,
  Matches,
} from 'class-validator'
import { LONGEST_RETENTION } from '#libs/domain/account/access.js'
import { parseLifespan, UNIT_MS } from '#libs/domain/inbox/inbox.js'
import { IfGiven, Rule, durationPattern, Repeatable } from '../http/validation.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { applyDecorators } from '@nestjs/common'
import Type from 'typebox'

const MAX_LABELS = 16
/** A colon separates name and value in queries. Not every store and client keeps the name `__proto__`. */
const NAME = /^(?!__proto__$)[^:\p{Cc}\p{Cs}]{1,64}$/u
const VALUE = /^[^\p{Cc}\p{Cs}]{0,128}$/u

/** Anything but control characters, in the syntax that every JSON Schema validator supports. */
const LABEL_CHARACTER = '[^\\u0000-\\u001f\\u007f-\\u009f]'

export const InboxLabels = Type.Unsafe<Readonly<Record<string, string>>>({
  $id: 'InboxLabels',
  description:
    'Pairs of a name of up to 64 characters and a value of up to 128, by which inboxes are found. They outlive the ' +
    'inbox: nothing personal belongs in them.',
  type: 'object',
  maxProperties: MAX_LABELS,
  propertyNames: { pattern: `^${LABEL_CHARACTER.replace('[^', '[^:')}{1,64}$`, not: { const: '__proto__' } },
  additionalProperties: { type: 'string', pattern: `^${LABEL_CHARACTER}{0,128}$` },
  examples: [{ run: '42' }],
})

/** At most 16 pairs; names of up to 64 characters, none of them a colon; values of up to 128. */
export function IsLabels(): PropertyDecorator {
  return Rule(
    'isLabels',
    isLabels,
    `labels must be an object of at most ${MAX_LABELS} pairs: names of 1 to 64 characters, without colons ` +
      `and not "__proto__"; values of up to 128 characters; no control characters, no half surrogate pairs`,
  )
}

function isLabels(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const pairs = Object.entries(value)
  return (
    pairs.length <= MAX_LABELS &&
    pairs.every(([name, text]) => NAME.test(name) && typeof text === 'string' && VALUE.test(text))
  )
}

const FILTER = /^[^:]{1,64}:[\s\S]{0,128}$/u

/** `label` of a query, once or several times: all must match. */
export function AreLabelFilters(): PropertyDecorator {
  return applyDecorators(
    Matches(FILTER, { each: true, message: 'label must be <name>:<value>' }),
    ArrayMaxSize(MAX_LABELS, { message: `label may come ${MAX_LABELS} times` }),
    IsArray({ message: 'label must be given' }),
    Repeatable(),
  )
}

/** The name and value of each label of a query. */
export function readLabels(texts: readonly string[] = []): (readonly [name: string, value: string])[] {
  return texts.map(parseLabel).filter((label) => label !== null)
}

/** Reads `<name>:<value>`; null for anything else. */
function parseLabel(text: string): readonly [name: string, value: string] | null {
  const colon = text.indexOf(':')
  return colon < 1 ? null : [text.slice(0, colon), text.slice(colon + 1)]
}

/** The body of POST /v1/inboxes. */
@DescribeBody({
  description: 'A new inbox. Every property is optional.',
  example: { duration: '30m', name: 'sign-up', labels: { run: '42' } },
})
export class CreateInbox {
  @DescribeProperty(
    'How long it lives: a whole number and one of `m`, `h`, `d`, `w`, from one minute up to the retention of the plan; ' +
      'the smaller of that and 24 hours by default.',
    {
      type: 'string',
      pattern: `^${durationPattern(UNIT_MS, LONGEST_RETENTION.ms)}$`,
      examples: ['30m', '24h', '7d', '2w'],
    },
  )
  @IfGiven()
  @IsDuration()
  duration?: string

  @DescribeProperty('Whether its mail needs a password, which the answer has then.', { default: false })
  @IfGiven()
  @IsBoolean({ message: 'password_protected must be true or false' })
  password_protected?: boolean

  @DescribeProperty('For people.')
  @IsOptional()
  @IsWellFormed()
  @MaxLength(200, { message: 'name must be a string of at most 200 characters' })
  @IsString({ message: 'name must be a string of at most 200 characters' })
  name?: string | null

  @DescribeProperty('Labels for finding the inbox later.', InboxLabels)
  @IfGiven()
  @IsLabels()
  labels?: Record<string, string>
}

function IsDuration(): PropertyDecorator {
  return Rule(
    'isDuration',
    (value) => typeof value === 'string' && parseLifespan(value) !== null,
    '$property must be a whole number and one of m, h, d, w, and at least "1m": "30m", "24h", "7d", "2w"',
  )
}

/** A half surrogate pair is not a character, and would be answered in another form. */
function IsWellFormed(): PropertyDecorator {
  return Rule(
    'isWellFormed',
    (value) => typeof value === 'string' && value.isWellFormed(),
    '$property must be Unicode text: it holds half a surrogate pair',
  )
}

/** The query of GET /v1/inboxes. */
export class ListInboxes {
  @DescribeProperty('In which state they are.')
  @IsIn(['active', 'deleted', 'expired'], { message: 'state must be active, deleted or expired' })
  state: 'active' | 'deleted' | 'expired' = 'active'

  @DescribeProperty('`<name>:<value>` that they must have; of several all must hold.', {
    examples: [['run:42']],
  })
  @IsOptional()
  @AreLabelFilters()
  label?: string[]

  @IsLimit({ max: 1000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}
