import {
  Injectable,
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  type PipeTransform,
  type Type,
  SetMetadata,
} from '@nestjs/common'
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js'
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js'
import { plainToInstance, Transform } from 'class-transformer'
import { getMetadataStorage, validate, ValidateIf, ValidateBy } from 'class-validator'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { invalid, type Fault, Problem } from './problems.js'
import { GRACE_UNIT_MS, parseGrace } from '#libs/domain/account/access.js'
import { Reflector } from '@nestjs/core'
import accepts from 'accepts'

/** Reads a whole number in digits. The validation refuses anything else, which is left as it is. */
export function FromDigits(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value,
  )
}

/** Reads `true` and `false`. The validation refuses anything else, which is left as it is. */
export function FromTrueOrFalse(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) =>
    value === 'true' ? true : value === 'false' ? false : value,
  )
}

/** A parameter that may come once or several times, as an array. */
export function Repeatable(): PropertyDecorator {
  return Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? [value] : value))
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

/** A property that may be left out. Null, which IsOptional lets pass, is checked by its rules. */
export function IfGiven(): PropertyDecorator {
  return ValidateIf((_, value) => value !== undefined)
}

/** The query, or the body, of a request that takes none: whatever is in it is a fault. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- Nest takes it as the type to check against.
export class NoParameters {}

const TIME = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?'
const ZONE = '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)'

/** How a moment is written (RFC 3339, section 5.6), without leap seconds. */
export const MOMENT_FORM = `\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])[Tt]${TIME}${ZONE}`

const FORM = new RegExp(`^${MOMENT_FORM}$`)
const IN_UTC = /^\d{4}-/

/** The moment that a text names, to the millisecond; null if it names none, or one outside the years 0 to 9999. */
export function parseMoment(text: string): Date | null {
  if (!FORM.test(text)) return null
  const date = text.slice(0, 10)
  // Date takes a day that its month does not have for one of the next month.
  if (new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10) !== date) return null
  const moment = new Date(text.toUpperCase())
  return IN_UTC.test(moment.toISOString()) ? moment : null
}

/** The moment that a validated text names. */
export function readMoment(text: string): Date {
  const moment = parseMoment(text)
  if (moment === null) throw new TypeError(`not a moment: ${text}`)
  return moment
}

/** A moment as JSON Schema. */
export const MOMENT_SCHEMA = {
  type: 'string',
  pattern: `^${MOMENT_FORM}$`,
  examples: ['2026-11-21T08:00:00Z'],
}

/** What is accepted as a moment, for the message of a fault. */
export const MOMENT_RULE = 'a moment as RFC 3339 has it: "2026-11-21T08:00:00Z"'

/** A moment (RFC 3339), read by `parseMoment`. */
export function IsMoment(): PropertyDecorator {
  const isMoment = (value: unknown) => typeof value === 'string' && parseMoment(value) !== null
  return Rule('isMoment', isMoment, `$property must be ${MOMENT_RULE}`)
}

const LONGEST_MS = 7 * 86_400_000

/** A grace period as JSON Schema. */
export const GRACE_SCHEMA = {
  type: 'string',
  pattern: `^(0[smhdw]?|${durationPattern(GRACE_UNIT_MS, LONGEST_MS)})$`,
  examples: ['30m'],
}

/** How long a former secret goes on working. The decision on the command bounds it. */
export function IsGrace(): PropertyDecorator {
  return Rule(
    'isGrace',
    (value) => typeof value === 'string' && parseGrace(value) !== null,
    '$property must be "0", or a whole number and one of s, m, h, d, w, at most "7d": "30m", "24h"',
  )
}

/**
 * A pattern of durations from one unit up to `longestMs`: JSON Schema has no other way to bound a number in a text.
 * `unitMs` has the milliseconds of each unit by its letter.
 */
export function durationPattern(unitMs: Readonly<Record<string, number>>, longestMs: number): string {
  const units = Object.entries(unitMs).map(([unit, ms]) => {
    return `(${wholeNumbersUpTo(Math.floor(longestMs / ms))})${unit}`
  })
  return `0*(${units.join('|')})`
}

/** A pattern of the numbers from 1 to `most`, without leading zeros. */
export function wholeNumbersUpTo(most: number): string {
  const digits = String(most)
  const shorter = digits.length === 1 ? [] : [`[1-9]${anyDigits(0, digits.length - 2)}`]
  // A number with as many digits is smaller from some digit on.
  const asLong = Array.from(digits).flatMap((digit, index) => {
    const [least, below] = [index === 0 ? 1 : 0, Number(digit) - 1]
    if (below < least) return []
    const rest = digits.length - index - 1
    return [`${digits.slice(0, index)}[${least}-${below}]${anyDigits(rest, rest)}`]
  })
  return [...shorter, ...asLong, digits].join('|')
}

function anyDigits(least: number, most: number): string {
  return most === 0 ? '' : `\\d{${least},${most}}`
}

const MAX_REMEMBERED = 1_000
const MAX_REMEMBERED_CHARACTERS = 500

/** What a handler's argument is read from, and its class. */
interface Argument {
  type: ArgumentMetadata['type']
  metatype?: Type<object> | undefined
}

/**
 * Checks bodies and queries against their classes. A property or parameter that the class does not name is an
 * error too. An empty body counts as `{}`.
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  /** Queries that were valid: most come again and again. */
  private readonly valid = new LRUCache<string, object>({ max: MAX_REMEMBERED })
  private readonly numbers = new Map<Type<object>, number>()

  async transform(value: unknown, { type, metatype }: Argument): Promise<unknown> {
    if (metatype === undefined || (type !== 'body' && type !== 'query')) return value
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

/** Refuses a query, or a body, of a request whose handler takes none. */
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

type Source = 'body' | 'query'

const NOUN: Record<Source, string> = { body: 'property', query: 'query parameter' }
/** Of unknown properties: a body may have many. */
const MAX_FAULTS = 20

/** The values as an instance of the class. Throws invalid-request with every fault. */
async function check(plain: object, type: Source, metatype: Type<object>): Promise<object> {
  // The names that have rules: class-validator's own whitelist takes `constructor` for a known name.
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false)
  const names = new Set(rules.map(({ propertyName }) => propertyName))
  const known = Object.fromEntries(Object.entries(plain).filter(([name]) => names.has(name)))
  const unknown = Object.keys(plain).filter((name) => !names.has(name))
  // The text of a query is converted to the types of the class. A body stays as it came, however deep.
  const instance =
    type === 'query'
      ? plainToInstance(metatype, known, { exposeUnsetFields: false })
      : Object.assign(new metatype(), known)
  const errors = await validate(instance, { forbidUnknownValues: false, stopAtFirstError: true })
  const [first, ...others] = [
    ...unknown.slice(0, MAX_FAULTS).map((name) => faultAt(type, name, `there is no ${NOUN[type]} "${name}"`)),
    ...errors.map(({ property, constraints = {} }) =>
      faultAt(type, property, Object.values(constraints).join('; ')),
    ),
  ]
  if (first !== undefined) throw invalid(first, ...others)
  return instance
}

function faultAt(type: Source, name: string, detail: string): Fault {
  return type === 'body'
    ? { detail, pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: name }
}

const PRODUCES = 'produces'

interface Produced {
  mediaType: string
  /** Those of its Content-Type, which an Accept may name too. */
  parameters: string
}

/** The media type of the handler's answer, if it is not JSON. */
export function Produces(mediaType: string, parameters = 'charset=utf-8'): MethodDecorator {
  return SetMetadata(PRODUCES, { mediaType, parameters } satisfies Produced)
}

/** The handler's answer has a media type that is known only when it is read. */
export const ProducesAnything = (): MethodDecorator => SetMetadata(PRODUCES, null)

/** The media type of a handler's answer; null if that is known only when it is read. */
export function producedBy(reflector: Reflector, handler: Handler): Produced | null {
  const produced = reflector.get<Produced | null | undefined>(PRODUCES, handler)
  return produced === undefined ? { mediaType: 'application/json', parameters: 'charset=utf-8' } : produced
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
    const { mediaType, parameters } = produced
    if (accepts(request.raw).type(`${mediaType}; ${parameters}`) !== false) return true
    throw new Problem('not-acceptable', { detail: `The answer is ${mediaType}.` })
  }
}
