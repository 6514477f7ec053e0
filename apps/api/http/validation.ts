import {
  applyDecorators,
  Injectable,
  SetMetadata,
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common'
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js'
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js'
import { Reflector } from '@nestjs/core'
import accepts from 'accepts'
import { plainToInstance, Transform } from 'class-transformer'
import {
  getMetadataStorage,
  IsArray,
  IsInt,
  Max,
  Min,
  validate,
  ValidateBy,
  ValidateIf,
} from 'class-validator'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { GRACE_UNIT_MS, MAX_GRACE_MS, parseGrace } from '#libs/domain/account/access.js'
import { invalid, Problem, type Fault } from './problems.js'

/*
 * Validates requests: bodies and queries against the classes of the handler's arguments, `Accept` against the media
 * type that the handler produces. Then the rules that these classes use in addition to those of class-validator.
 */

const MAX_REMEMBERED = 1_000
const MAX_REMEMBERED_CHARACTERS = 500

/** The source of a handler's argument, and its class. */
interface Argument {
  type: ArgumentMetadata['type']
  metatype?: Type<object> | undefined
}

/**
 * Validates bodies and queries against their classes. A property or parameter that the class does not have is an error
 * too. An empty body counts as `{}`.
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  /** Valid queries. Most queries are sent many times. */
  private readonly valid = new LRUCache<string, object>({ max: MAX_REMEMBERED })
  /** A number for each class, since two classes may have the same name. */
  private readonly numbers = new Map<Type<object>, number>()

  async transform(value: unknown, { type, metatype }: Argument): Promise<unknown> {
    if (metatype === undefined || (type !== 'body' && type !== 'query')) return value
    // A mail, for a handler that accepts one.
    if (Buffer.isBuffer(value)) return value
    const list = type === 'body' ? new Reflector().get<ItemList | undefined>(ListOf.KEY, metatype) : undefined
    if (list !== undefined) return Object.assign(new metatype(), { items: await checkItems(value, list) })
    const plain = value === undefined ? {} : value
    if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
      throw invalid({ detail: 'the body must be a JSON object', pointer: '' })
    }
    if (type === 'body') return check(plain, type, metatype)
    const number = this.numbers.get(metatype) ?? this.numbers.size
    this.numbers.set(metatype, number)
    const name = `${number} ${JSON.stringify(plain)}`
    const known = this.valid.get(name)
    if (known !== undefined) return known
    const instance = Object.freeze(await check(plain, type, metatype))
    if (name.length <= MAX_REMEMBERED_CHARACTERS) this.valid.set(name, instance)
    return instance
  }
}

/** The query or the body of a handler that declares none: any parameter or property in it is an error. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- Nest takes it as the type to check against.
class NoParameters {}

/** Refuses a query or a body if the handler declares none. */
@Injectable()
export class UndeclaredInputGuard implements CanActivate {
  constructor(private readonly pipe: ContractPipe) {}

  async canActivate(context: ExecutionContext): Promise<true> {
    const { method, query, body } = context.switchToHttp().getRequest<FastifyRequest>()
    const { name } = context.getHandler()
    const declared: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, context.getClass(), name)
    const keys = Object.keys(declared ?? {})
    if (!keys.some((key) => key.startsWith(`${RouteParamtypes.QUERY}:`))) {
      await this.pipe.transform(query, { type: 'query', metatype: NoParameters })
    }
    // The body of a GET is discarded.
    const hasBody = method !== 'GET' && method !== 'HEAD'
    if (hasBody && !keys.some((key) => key.startsWith(`${RouteParamtypes.BODY}:`))) {
      await this.pipe.transform(body, { type: 'body', metatype: NoParameters })
    }
    return true
  }
}

export interface ItemList {
  item: Type<object>
  maxItems: number
}

/** The body is a list of objects of another class, which are the `items` of the decorated class. */
export const ListOf = Reflector.createDecorator<ItemList>()

const LIST = 'list'

/** The property is a list of objects of another class. */
export function IsListOf(list: ItemList): PropertyDecorator {
  return applyDecorators(Reflect.metadata(LIST, list), IsArray({ message: '$property must be an array' }))
}

/** The class of a property's items, and how many it may have; undefined if the property is not such a list. */
export function listAt(metatype: Type, property: string): ItemList | undefined {
  return Reflect.getMetadata(LIST, metatype.prototype as object, property) as ItemList | undefined
}

/** Throws invalid-request with the faults of the first item that has any; `at` points to the list. */
async function checkItems(value: unknown, { item, maxItems }: ItemList, at = ''): Promise<object[]> {
  if (!Array.isArray(value) || value.length > maxItems) {
    throw invalid({ detail: `must be a JSON array of at most ${maxItems} objects`, pointer: at })
  }
  const items: object[] = []
  for (const [index, plain] of (value as unknown[]).entries()) {
    if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
      throw invalid({ detail: 'must be a JSON object', pointer: `${at}/${index}` })
    }
    items.push(await check(plain, 'body', item, `${at}/${index}`))
  }
  return items
}

type Source = 'body' | 'query'

const NOUN: Record<Source, string> = { body: 'property', query: 'query parameter' }
/** The maximum number of unknown properties that are reported: a body may have many. */
const MAX_FAULTS = 20

/** The values as an instance of the class. Throws invalid-request with every fault; `at` points to a part of a body. */
async function check(plain: object, type: Source, metatype: Type<object>, at = ''): Promise<object> {
  // The names that have rules: class-validator's own whitelist takes `constructor` for a known name.
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false)
  const names = new Set(rules.map(({ propertyName }) => propertyName))
  const known = Object.fromEntries(Object.entries(plain).filter(([name]) => names.has(name)))
  const unknown = Object.keys(plain).filter((name) => !names.has(name))
  // The text of a query is converted to the types of the class. A body is not converted, however deep it is.
  const instance =
    type === 'query'
      ? plainToInstance(metatype, known, { exposeUnsetFields: false })
      : Object.assign(new metatype(), known)
  const errors = await validate(instance, { forbidUnknownValues: false, stopAtFirstError: true })
  const [first, ...others] = [
    ...unknown
      .slice(0, MAX_FAULTS)
      .map((name) => faultAt(type, name, `there is no ${NOUN[type]} "${name}"`, at)),
    ...errors.map(({ property, constraints = {} }) =>
      faultAt(type, property, Object.values(constraints).join('; '), at),
    ),
  ]
  if (first !== undefined) throw invalid(first, ...others)
  for (const [name, value] of Object.entries(known)) {
    const list = listAt(metatype, name)
    if (list !== undefined)
      Object.assign(instance, { [name]: await checkItems(value, list, `${at}/${name}`) })
  }
  return instance
}

function faultAt(type: Source, name: string, detail: string, at: string): Fault {
  return type === 'body'
    ? { detail, pointer: `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: name }
}

const PRODUCES = 'produces'

interface Produced {
  mediaType: string
  /** Another media type that the client may choose by `Accept`; null if there is none. */
  alternative: string | null
  /** The parameters of its Content-Type. `Accept` may have them too. */
  parameters: string
}

const JSON_ANSWER: Produced = {
  mediaType: 'application/json',
  parameters: 'charset=utf-8',
  alternative: null,
}

/** The media type of the handler's answer, if it is not JSON. */
export function Produces(mediaType: string, parameters = 'charset=utf-8'): MethodDecorator {
  return SetMetadata(PRODUCES, { mediaType, parameters, alternative: null } satisfies Produced)
}

export const NDJSON = 'application/x-ndjson'

/** The handler's answer is JSON, or one JSON object per line if `prefersLines`. */
export const ProducesLines = (): MethodDecorator =>
  SetMetadata(PRODUCES, { ...JSON_ANSWER, alternative: NDJSON } satisfies Produced)

/** Whether a client prefers lines of JSON to one array. */
export function prefersLines({ raw }: FastifyRequest): boolean {
  return accepts(raw).type([JSON_ANSWER.mediaType, NDJSON]) === NDJSON
}

/** The media type of the handler's answer is known only when the content is read. */
export const ProducesAnything = (): MethodDecorator => SetMetadata(PRODUCES, null)

/** The media type of a handler's answer; null if it is known only when the content is read. */
export function producedBy(reflector: Reflector, handler: Handler): Produced | null {
  const produced = reflector.get<Produced | null | undefined>(PRODUCES, handler)
  return produced === undefined ? JSON_ANSWER : produced
}

type Handler = ReturnType<ExecutionContext['getHandler']>

/** Refuses requests whose Accept excludes the handler's media type (RFC 9110, section 12.5.1). */
@Injectable()
export class AcceptGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const produced = producedBy(this.reflector, context.getHandler())
    const request = context.switchToHttp().getRequest<FastifyRequest>()
    if (produced === null || request.headers.accept === undefined) return true
    const { mediaType, parameters, alternative } = produced
    const offered = [`${mediaType}; ${parameters}`, ...(alternative === null ? [] : [alternative])]
    if (accepts(request.raw).type(offered) !== false) return true
    const either = alternative === null ? mediaType : `${mediaType} or ${alternative}`
    throw new Problem('not-acceptable', { detail: `The answer is ${either}.` })
  }
}

/** A rule of class-validator. In its message, `$property` is replaced with the property's name. */
export function Rule(
  name: string,
  validate: (value: unknown) => boolean,
  message: string | ((value: unknown) => string),
): PropertyDecorator {
  const defaultMessage = (rule?: { value: unknown }) =>
    typeof message === 'string' ? message : message(rule?.value)
  return ValidateBy({ name, validator: { validate, defaultMessage } })
}

/** A lone surrogate is not a character, and would be answered as another character. */
export function IsWellFormed(): PropertyDecorator {
  return Rule(
    'isWellFormed',
    (value) => typeof value === 'string' && value.isWellFormed(),
    '$property must be Unicode text, without lone surrogates',
  )
}

/** A whole number that may be left out. */
export function IsWholeNumber(min: number, max: number): PropertyDecorator {
  return applyDecorators(
    IfGiven(),
    IsInt({ message: '$property must be a whole number' }),
    Min(min, { message: `$property must be at least ${min}` }),
    Max(max, { message: `$property must be at most ${max}` }),
  )
}

/** A property that may be left out. Its rules apply to null, unlike with IsOptional. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}

/** Converts digits to a number. Any other value is left unchanged, for the rules to refuse. */
export function FromDigits(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value,
  )
}

/** Converts `true` and `false`. Any other value is left unchanged, for the rules to refuse. */
export function FromTrueOrFalse(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    value === 'true' ? true : value === 'false' ? false : value,
  )
}

/** Makes an array of a parameter that can be repeated, also if it is sent once. */
export function Repeatable(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? [value] : value))
}

const CLOCK_TIME = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?'
const ZONE = '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)'

/** The pattern of a time (RFC 3339, section 5.6), without leap seconds. */
export const TIME_PATTERN = `\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]${CLOCK_TIME}${ZONE}`

const TIME = new RegExp(`^${TIME_PATTERN}$`)
const IN_UTC = /^\d{4}-/

/** A time to the millisecond; null if the text is not a time, or the year is not from 0 to 9999 in UTC. */
export function parseTime(text: string): Date | null {
  if (!TIME.test(text)) return null
  const date = text.slice(0, 10)
  // Date reads a day that the month does not have as a day of the next month.
  if (new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10) !== date) return null
  const time = new Date(text.toUpperCase())
  return IN_UTC.test(time.toISOString()) ? time : null
}

/** The time of a validated text. */
export function readTime(text: string): Date {
  const time = parseTime(text)
  if (time === null) throw new TypeError(`not a time: ${text}`)
  return time
}

/** A time as JSON Schema. */
export const TIME_SCHEMA = {
  type: 'string',
  pattern: `^${TIME_PATTERN}$`,
  examples: ['2026-11-21T08:00:00Z'],
}

/** The form of a time, for messages. */
export const TIME_FORM = 'a time as in RFC 3339, such as "2026-11-21T08:00:00Z"'

/** A time (RFC 3339), read by `parseTime`. */
export function IsTime(): PropertyDecorator {
  const isTime = (value: unknown) => typeof value === 'string' && parseTime(value) !== null
  return Rule('isTime', isTime, `$property must be ${TIME_FORM}`)
}

/** A grace period as JSON Schema. */
export const GRACE_SCHEMA = {
  type: 'string',
  pattern: `^(0[smhdw]?|${durationPattern(GRACE_UNIT_MS, MAX_GRACE_MS)})$`,
  examples: ['30m'],
}

/** How long a former secret stays valid. The maximum is checked when the command is decided. */
export function IsGrace(): PropertyDecorator {
  return Rule(
    'isGrace',
    (value) => typeof value === 'string' && parseGrace(value) !== null,
    '$property must be "0", or a whole number and one of s, m, h, d, w, at most "7d": "30m", "24h"',
  )
}

/**
 * A pattern of durations from one unit to `maxMs`: JSON Schema can't limit a number in a text in another way. `unitMs`
 * has the milliseconds of each unit by its letter.
 */
export function durationPattern(unitMs: Readonly<Record<string, number>>, maxMs: number): string {
  const units = Object.entries(unitMs).map(([unit, ms]) => {
    return `(${wholeNumbersUpTo(Math.floor(maxMs / ms))})${unit}`
  })
  return `0*(${units.join('|')})`
}

/** A pattern of the numbers from 1 to `max`, without leading zeros. */
export function wholeNumbersUpTo(max: number): string {
  const digits = String(max)
  const shorter = digits.length === 1 ? [] : [`[1-9]${anyDigits(0, digits.length - 2)}`]
  // A smaller number with as many digits has the same digits up to an index, and a smaller digit there.
  const sameLength = Array.from(digits).flatMap((digit, index) => {
    const [lowest, highest] = [index === 0 ? 1 : 0, Number(digit) - 1]
    if (highest < lowest) return []
    const rest = digits.length - index - 1
    return [`${digits.slice(0, index)}[${lowest}-${highest}]${anyDigits(rest, rest)}`]
  })
  return [...shorter, ...sameLength, digits].join('|')
}

function anyDigits(min: number, max: number): string {
  return max === 0 ? '' : `\\d{${min},${max}}`
}
