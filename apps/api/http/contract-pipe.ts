import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common'
import { plainToInstance } from 'class-transformer'
import { validate, type ValidationError } from 'class-validator'
import { invalid, type Fault } from './problems.js'

/**
 * Checks bodies and queries against their classes. A property or parameter that the class does not name is a
 * fault too. An empty body counts as `{}`.
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  async transform(value: unknown, { type, metatype }: ArgumentMetadata): Promise<unknown> {
    if (metatype === undefined || (type !== 'body' && type !== 'query')) return value
    const plain = value ?? {}
    if (typeof plain !== 'object' || Array.isArray(plain)) {
      throw invalid({ detail: 'the body must be a JSON object', pointer: '' })
    }
    const instance: unknown = plainToInstance(metatype, plain, { exposeUnsetFields: false })
    if (typeof instance !== 'object' || instance === null) throw new TypeError('a class made no instance')
    const errors = await validate(instance, EXACTLY)
    const [first, ...others] = errors.map((error) => faultOf(type, error))
    if (first !== undefined) throw invalid(first, ...others)
    return instance
  }
}

/** A class without rules takes nothing: its properties are judged like any other's. */
const EXACTLY = { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: false }

function faultOf(type: 'body' | 'query', { property, constraints = {} }: ValidationError): Fault {
  const isUnknown = 'whitelistValidation' in constraints
  const noun = type === 'body' ? 'property' : 'query parameter'
  const detail = isUnknown ? `there is no ${noun} "${property}"` : Object.values(constraints).join('; ')
  return type === 'body'
    ? { detail, pointer: `/${property.replaceAll('~', '~0').replaceAll('/', '~1')}` }
    : { detail, parameter: property }
}
