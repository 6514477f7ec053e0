import {
  applyDecorators,
  Injectable,
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common'
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js'
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js'
import { Reflector } from '@nestjs/core'
import { plainToInstance } from 'class-transformer'
import { getMetadataStorage, IsArray, validate } from 'class-validator'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { invalid, type RequestError } from './problems.js'
import { isRepeatable } from './rules.js'

/*
 * Validates bodies and queries against the classes of the handler's arguments.
 */

const MAX_REMEMBERED = 1_000
const MAX_REMEMBERED_CHARACTERS = 500

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

/** Of a handler whose query others define, such as RFC 6749 in section 4.1.2: unknown parameters must be ignored. */
export const AcceptAnyQuery = Reflector.createDecorator()

/** Refuses a query or a body if the handler declares none. */
@Injectable()
export class UndeclaredInputGuard implements CanActivate {
  constructor(private readonly pipe: ContractPipe) {}

  async canActivate(context: ExecutionContext): Promise<true> {
    const { method, query, body } = context.switchToHttp().getRequest<FastifyRequest>()
    const { name } = context.getHandler()
    const declared: unknown = Reflect.getMetadata(ROUTE_ARGS_METADATA, context.getClass(), name)
    const keys = Object.keys(declared ?? {})
    const isQueryOfOthers = new Reflector().get(AcceptAnyQuery, context.getHandler()) !== undefined
    if (!isQueryOfOthers && !keys.some((key) => key.startsWith(`${RouteParamtypes.QUERY}:`))) {
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

export function IsListOf(list: ItemList): PropertyDecorator {
  return applyDecorators(Reflect.metadata(LIST, list), IsArray({ message: '$property must be an array' }))
}

/** The class of a property's items, and how many it may have; undefined if the property is not such a list. */
export function listAt(metatype: Type, property: string): ItemList | undefined {
  return Reflect.getMetadata(LIST, metatype.prototype as object, property) as ItemList | undefined
}

/** Throws invalid-request with the errors of the first item that has any; `at` points to the list. */
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
const MAX_ERRORS = 20

/** The values as an instance of the class. Throws invalid-request with every error; `at` points to a part of a body. */
async function check(plain: object, type: Source, metatype: Type<object>, at = ''): Promise<object> {
  // The names that have rules: class-validator's own whitelist takes `constructor` for a known name.
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false)
  const names = new Set(rules.map(({ propertyName }) => propertyName))
  const known = Object.fromEntries(Object.entries(plain).filter(([name]) => names.has(name)))
  const unknown = Object.keys(plain).filter((name) => !names.has(name))
  const repeated = Object.entries(known).flatMap(([name, value]) =>
    type === 'query' && Array.isArray(value) && !isRepeatable(metatype, name) ? [name] : [],
  )
  // The text of a query is converted to the types of the class. A body is not converted, however deep it is.
  const instance =
    type === 'query'
      ? plainToInstance(metatype, known, { exposeUnsetFields: false })
      : Object.assign(new metatype(), known)
  const errors = await validate(instance, { forbidUnknownValues: false, stopAtFirstError: true })
  const [first, ...others] = [
    ...unknown
      .slice(0, MAX_ERRORS)
      .map((name) => errorAt(type, name, `there is no ${NOUN[type]} "${name}"`, at)),
    ...repeated.map((name) => errorAt(type, name, `${name} must be sent once`, at)),
    ...errors
      .filter(({ property }) => !repeated.includes(property))
      .map(({ property, constraints = {} }) =>
        errorAt(type, property, Object.values(constraints).join('; '), at),
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

function errorAt(type: Source, name: string, detail: string, at: string): RequestError {
  return type === 'body'
    ? { detail, pointer: `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: name }
}
