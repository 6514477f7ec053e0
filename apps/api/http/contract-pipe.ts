import { Injectable, type ArgumentMetadata, type PipeTransform, type Type } from '@nestjs/common'
import { plainToInstance } from 'class-transformer'
import { getMetadataStorage, validate, type ValidationError } from 'class-validator'
import { LRUCache } from 'lru-cache'
import { invalid, type Fault } from './problems.js'

/**
 * Checks bodies and queries against their classes. A property or parameter that the class does not name is a
 * fault too. An empty body counts as `{}`.
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  /** Queries that were found right: most come again and again. */
  private readonly right = new LRUCache<string, object>({ max: MAX_REMEMBERED })
  private readonly numbers = new Map<Type, number>()

  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if (metatype === undefined || (type !== 'body' && type !== 'query')) return value
    const plain = value === undefined ? {} : value
    if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
      throw invalid({ detail: 'the body must be a JSON object', pointer: '' })
    }
    if (type === 'body') return check(plain, type, metatype)
    const name = this.nameOf(metatype, plain)
    const known = this.right.get(name)
    if (known !== undefined) return known
    const instance = Object.freeze(await check(plain, type, metatype))
    if (name.length <= MAX_REMEMBERED_CHARACTERS) this.right.set(name, instance)
    return instance
  }

  private nameOf(metatype: Type, plain: object): string {
    const number = this.numbers.get(metatype) ?? this.numbers.size
    this.numbers.set(metatype, number)
    return `${number} ${JSON.stringify(plain)}`
  }
}

const MAX_REMEMBERED = 1_000
const MAX_REMEMBERED_CHARACTERS = 500

/** The instance of the class that the values make; throws invalid-request with every fault. */
async function check(plain: object, type: Source, metatype: Type): Promise<object> {
  const names = namesIn(metatype)
  const [known, unknown] = divide(Object.entries(plain), ([name]) => names.has(name))
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

/** Of those that nobody named beforehand: a body has room for many. */
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

function divide<Item>(items: Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}

function faultOf(type: Source, { property, constraints = {} }: ValidationError): Fault {
  return faultAt(type, property, Object.values(constraints).join('; '))
}

function faultAt(type: Source, name: string, detail: string): Fault {
  return type === 'body'
    ? { detail, pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: name }
}
