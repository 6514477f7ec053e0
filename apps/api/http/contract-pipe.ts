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
import { getMetadataStorage, validate } from 'class-validator'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { NoParameters } from './dto-values.js'
import { invalid, type Fault } from './problems.js'

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
