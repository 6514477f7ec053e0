import {
  Injectable,
  type ArgumentMetadata,
  type CanActivate,
  type ExecutionContext,
  type PipeTransform,
  type Type,
} from '@nestjs/common'
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js'
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js'
import { plainToInstance } from 'class-transformer'
import { getMetadataStorage, validate, type ValidationError } from 'class-validator'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { NoParameters } from './dto-values.js'
import { invalid, type Fault } from './problems.js'

const MAX_REMEMBERED = 1_000
const MAX_REMEMBERED_CHARACTERS = 500

/**
 * Checks bodies and queries against their classes. A property or parameter that the class does not name is an
 * error too. An empty body counts as `{}`.
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  /** Queries that were valid: most come again and again. */
  private readonly valid = new LRUCache<string, object>({ max: MAX_REMEMBERED })
  private readonly numbers = new Map<Type, number>()

  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
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
    const handlerArguments: unknown = Reflect.getMetadata(
      ROUTE_ARGS_METADATA,
      context.getClass(),
      context.getHandler().name,
    )
    const kinds = Object.keys(handlerArguments ?? {}).map((key) => parseInt(key))
    if (!kinds.includes(RouteParamtypes.QUERY)) {
      await this.pipe.transform(query, { type: 'query', metatype: NoParameters })
    }
    // The body of a GET is discarded.
    if (method !== 'GET' && method !== 'HEAD' && !kinds.includes(RouteParamtypes.BODY)) {
      await this.pipe.transform(body, { type: 'body', metatype: NoParameters })
    }
    return true
  }
}

/** The values as an instance of the class. Throws invalid-request with every fault. */
async function check(plain: object, type: Source, metatype: Type): Promise<object> {
  const names = namesIn(metatype)
  const entries = Object.entries(plain)
  const known = entries.filter(([name]) => names.has(name))
  const unknown = entries.filter(([name]) => !names.has(name))
  const instance = instanceOf(metatype, type, Object.fromEntries(known))
  const errors = await validate(instance, { forbidUnknownValues: false, stopAtFirstError: true })
  const [first, ...others] = [
    ...unknown
      .slice(0, MAX_FAULTS)
      .map(([name]) => faultAt(type, name, `there is no ${NOUN[type]} "${name}"`)),
    ...errors.map((error) => faultOf(type, error)),
  ]
  if (first !== undefined) throw invalid(first, ...others)
  return instance
}

/** Of unknown properties: a body may have many. */
const MAX_FAULTS = 20

type Source = 'body' | 'query'

const NOUN: Record<Source, string> = { body: 'property', query: 'query parameter' }

/** What a class has rules for. class-validator's own whitelist takes `constructor` for a known name. */
function namesIn(metatype: Type): Set<string> {
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false)
  return new Set(rules.map(({ propertyName }) => propertyName))
}

/** A query's values are text and are read as what the class wants; a body's stand as they came, however deep. */
function instanceOf(metatype: Type, type: Source, known: Record<string, unknown>): object {
  const instance: unknown =
    type === 'query'
      ? plainToInstance(metatype, known, { exposeUnsetFields: false })
      : Object.assign(new metatype() as object, known)
  if (typeof instance !== 'object' || instance === null) throw new TypeError('a class made no instance')
  return instance
}

function faultOf(type: Source, { property, constraints = {} }: ValidationError): Fault {
  return faultAt(type, property, Object.values(constraints).join('; '))
}

function faultAt(type: Source, name: string, detail: string): Fault {
  return type === 'body'
    ? { detail, pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: name }
}
