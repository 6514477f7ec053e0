import { applyDecorators } from '@nestjs/common'
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
} from 'class-validator'
import Type from 'typebox'
import { MAX_RETENTION } from '#libs/domain/account/access.js'
import type { Address } from '#libs/domain/inbox/events.js'
import type { Inbox } from '#libs/domain/inbox/inbox.js'
import { MAX_LABEL_BYTES, MAX_LABELS, parseLifespan, UNIT_MS } from '#libs/domain/inbox/new-inbox.js'
import { untaggedAddressOf } from '#libs/mail/mailbox.js'
import { IsCursor, IsLimit, IsOrder } from '../http/list-pages.js'
import { invalid, type Problem } from '../http/problems.js'
import {
  IfGiven,
  IsParsed,
  IsWellFormed,
  Repeatable,
  Rule,
  durationPattern,
  validated,
} from '../http/rules.js'
import { DescribeBody, DescribeProperty } from '../openapi/describe.js'

/*
 * The bodies that create and change an inbox, the query that lists inboxes, and the rules for labels.
 */

/** A colon separates name and value in queries. Some stores and clients lose the name `__proto__`. */
const NAME = /^(?!__proto__$)[^:\p{Cc}\p{Cs}]{1,64}$/u
const VALUE = /^[^\p{Cc}\p{Cs}]{0,128}$/u

/** Any character except control characters, in the syntax that every JSON Schema validator supports. */
const LABEL_CHARACTER = '[^\\u0000-\\u001f\\u007f-\\u009f]'

export const LABELS_FORM =
  `an object of at most ${MAX_LABELS} pairs: names of 1 to 64 characters, without colons and not "__proto__"; ` +
  'values of up to 128 characters; no control characters, no lone surrogates; ' +
  `all names and values together at most ${MAX_LABEL_BYTES} bytes in UTF-8`

export const InboxLabels = Type.Unsafe<Readonly<Record<string, string>>>({
  $id: 'InboxLabels',
  description:
    'Pairs of a name of up to 64 characters and a value of up to 128, to find inboxes by. In a request, all names and ' +
    `values together have at most ${MAX_LABEL_BYTES} bytes in UTF-8. They are kept after the inbox has ended, so do not ` +
    'put personal data in them.',
  type: 'object',
  maxProperties: MAX_LABELS,
  propertyNames: { pattern: `^${LABEL_CHARACTER.replace('[^', '[^:')}{1,64}$`, not: { const: '__proto__' } },
  additionalProperties: { type: 'string', pattern: `^${LABEL_CHARACTER}{0,128}$` },
  examples: [{ run: '42' }],
})
/** `label` in a query: `<name>:<value>`. */
export const LABEL_FILTER = /^[^:]{1,64}:[\s\S]{0,128}$/u

/** A lifetime as JSON Schema. */
const DURATION = {
  type: 'string',
  pattern: `^${durationPattern(UNIT_MS, MAX_RETENTION.ms)}$`,
  examples: ['30m', '24h', '7d', '2w'],
}

/** The properties of new inboxes. */
export class InboxProperties {
  @DescribeProperty(
    'The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan. Default: ' +
      'the shorter of that retention and 24 hours.',
  )
  @IfGiven()
  @IsDuration()
  duration?: string

  @DescribeProperty('Whether reading its mail requires a password. The answer then has the password.', {
    default: false,
  })
  @IfGiven()
  @IsBoolean({ message: 'password_protected must be true or false' })
  password_protected?: boolean

  @DescribeProperty('A name to show to people.')
  @IsName()
  name?: string | null

  @DescribeProperty('Labels to find the inbox by.')
  @IfGiven()
  @IsLabels()
  labels?: Record<string, string>
}

/** Mail may have made inboxes with others, which can be created again. */
const CHOSEN_ADDRESS =
  'a local part of at most 64 octets, without quotes, spaces, "+" or misplaced dots, and a domain: "support@staging.example.com"'

/** The body of POST /v1/inboxes. */
@DescribeBody({
  description: 'A new inbox. Every property is optional.',
  example: { duration: '30m', name: 'sign-up', labels: { run: '42' } },
})
export class CreateInbox extends InboxProperties {
  @DescribeProperty(
    'Its address, such as `support@staging.example.com`, in one of your domains. Default: a generated address.',
  )
  @IfGiven()
  @IsParsed('isAddress', untaggedAddressOf, `$property must have ${CHOSEN_ADDRESS}`, {
    ...{ type: 'string', maxLength: 320, pattern: '^[^\\s@+"]+@[^\\s@]+$' },
  })
  address?: string

  @DescribeProperty('Instead of `address`: its local part. Requires `domain`.')
  @IsTextOfAddress()
  local_part?: string

  @DescribeProperty('Instead of `address`: its domain. Requires `local_part`.')
  @IsTextOfAddress()
  domain?: string
}

/** An address, with the property of the request that has it. */
export interface ChosenAddress {
  address: Address
  pointer: string
}

/** The address that a new inbox is to have; null for a generated one. Throws invalid-request. */
export function readChosenAddress(body: CreateInbox): ChosenAddress | null {
  const { address, local_part: local, domain } = body
  if (local === undefined && domain === undefined) {
    return address === undefined ? null : { address: readAddress(address), pointer: '/address' }
  }
  if (address !== undefined || local === undefined || domain === undefined) {
    throw invalid({ detail: 'either address may be given, or local_part and domain together', pointer: '' })
  }
  const chosen = untaggedAddressOf(`${local}@${domain}`)
  if (chosen !== null) return { address: chosen, pointer: '/local_part' }
  throw addressNotAllowed('/local_part')
}

/** What is thrown for an address that an inbox can't be created with. */
export function addressNotAllowed(pointer: string): Problem {
  return invalid({ detail: `the address must have ${CHOSEN_ADDRESS}`, pointer })
}

const readAddress = validated(untaggedAddressOf)

function IsTextOfAddress(): PropertyDecorator {
  const message = '$property must be a string of at most 320 characters'
  return applyDecorators(IfGiven(), IsString({ message }), MaxLength(320, { message }))
}

/** The body of PATCH /v1/inboxes/{id}. */
@DescribeBody({
  description: 'What to change of an inbox. Every property is optional.',
  example: { duration: '2h', labels: { run: '43' } },
})
export class UpdateInbox {
  @DescribeProperty(
    'The lifetime, counted from the creation: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the ' +
      'retention of the plan.',
  )
  @IfGiven()
  @IsDuration()
  duration?: string

  @DescribeProperty('A name to show to people; null removes it.')
  @IsName()
  name?: string | null

  @DescribeProperty('Replaces all labels.')
  @IfGiven()
  @IsLabels()
  labels?: Record<string, string>
}

/** The query of GET /v1/inboxes. */
export class ListInboxes {
  @DescribeProperty('The state of the inboxes.')
  @IsIn(['active', 'deleted', 'expired'], { message: 'state must be active, deleted or expired' })
  state: 'active' | 'deleted' | 'expired' = 'active'

  @IsOptional()
  @AreLabelFilters('A label `<name>:<value>` that they must have.')
  label?: string[]

  @DescribeProperty('Only the newest inbox with this address, if it is in that state.', {
    examples: ['support@company.com'],
  })
  @IfGiven()
  @IsString({ message: 'address must be a string' })
  @MaxLength(320, { message: 'address may have at most 320 characters' })
  address?: string

  @IsLimit({ max: 1000 })
  limit: number = 25

  @IsOrder()
  order: 'asc' | 'desc' = 'desc'

  @IsCursor()
  cursor?: string
}

/** A lifetime, as `parseLifespan` reads it. */
export function IsDuration(): PropertyDecorator {
  return IsParsed(
    'isDuration',
    parseLifespan,
    '$property must be a whole number and one of m, h, d, w, and at least "1m": "30m", "24h", "7d", "2w"',
    DURATION,
  )
}

/** A text, or null. */
function IsName(): PropertyDecorator {
  const message = 'name must be a string of at most 200 characters'
  return applyDecorators(IsOptional(), IsString({ message }), MaxLength(200, { message }), IsWellFormed())
}

/** At most 16 pairs, of 1 KiB: names of up to 64 characters without colons, values of up to 128 characters. */
export function IsLabels(): PropertyDecorator {
  return Rule('isLabels', isLabels, `labels must be ${LABELS_FORM}`, InboxLabels)
}

export function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const pairs = Object.entries(value)
  return (
    pairs.length <= MAX_LABELS &&
    pairs.every(([name, text]) => NAME.test(name) && typeof text === 'string' && VALUE.test(text)) &&
    Buffer.byteLength(pairs.flat().join('')) <= MAX_LABEL_BYTES
  )
}

/** `label` in a query. It can be repeated; all must match. */
export function AreLabelFilters(description: string): PropertyDecorator {
  return applyDecorators(
    DescribeProperty(`${description} Repeat to require several labels.`, { examples: [['run:42']] }),
    Matches(LABEL_FILTER, { each: true, message: 'label must be <name>:<value>' }),
    ArrayMaxSize(MAX_LABELS, { message: `label may be sent at most ${MAX_LABELS} times` }),
    IsArray({ message: 'label must be given' }),
    Repeatable(),
  )
}

export type Label = readonly [name: string, value: string]

/** The name and value of each label of a query. */
export function readLabels(texts: readonly string[] = []): Label[] {
  return texts.map(parseLabel).filter((label) => label !== null)
}

/** The label of a path. Throws invalid-request if it is not one. */
export function requireLabel(text: string): Label {
  const label = LABEL_FILTER.test(text) ? parseLabel(text) : null
  if (label === null) throw invalid({ detail: 'the label must be <name>:<value>', parameter: 'label' })
  return label
}

/** Whether an inbox has all of these labels. */
export function hasLabels(inbox: Pick<Inbox, 'labels'>, labels: readonly Label[]): boolean {
  return labels.every(([name, value]) => inbox.labels[name] === value)
}

/** Reads `<name>:<value>`; null for anything else. */
function parseLabel(text: string): Label | null {
  const colon = text.indexOf(':')
  return colon < 1 ? null : [text.slice(0, colon), text.slice(colon + 1)]
}
