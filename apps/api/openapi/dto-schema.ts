import type { Type as Class } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import { getMetadataStorage } from 'class-validator'
import Type, { type TSchema } from 'typebox'
import { listAt, ListOf, type ItemList } from '../http/validation.js'
import { type BodyDescription, Bytes, DescribeBody, descriptionOf } from './describe.js'
import type { Operation, Parameter, SchemaJson } from './openapi-json.js'

interface Property {
  name: string
  description: string
  isRequired: boolean
  /** Whether null is allowed, and means that the property is left out. */
  allowsNull: boolean
  schema: SchemaJson
}

/**
 * The rules of class-validator as JSON Schema. Any other rule must have one itself, or a property with it one in
 * `DescribeProperty`.
 */
const RULES: Readonly<Record<string, (constraint: unknown) => object>> = {
  isString: () => ({ type: 'string' }),
  isBoolean: () => ({ type: 'boolean' }),
  isInt: () => ({ type: 'integer' }),
  isNumber: () => ({ type: 'number' }),
  isArray: () => ({ type: 'array' }),
  min: (minimum) => ({ minimum }),
  max: (maximum) => ({ maximum }),
  maxLength: (maxLength) => ({ maxLength }),
  isIn: (values) => ({ type: 'string', enum: values }),
  matches: (pattern) => ({ type: 'string', pattern: sourceOf(pattern) }),
  arrayMinSize: (minItems) => ({ minItems }),
  arrayMaxSize: (maxItems) => ({ maxItems }),
  arrayUnique: () => ({ uniqueItems: true }),
  // All strings in JSON Schema are well-formed.
  isWellFormed: () => ({}),
}

/** The parameters of a query, from the rules of its class. Throws as `propertiesOf` does. */
export function queryParameters(metatype: Class): Parameter[] {
  return propertiesOf(metatype).map(({ name, isRequired, description, schema }) => ({
    name,
    in: 'query',
    ...(isRequired ? { required: true } : {}),
    description,
    schema,
  }))
}

/**
 * A body, from the rules of its class, or a mail if `acceptsMail`; nothing if the class has no properties. Throws as
 * `propertiesOf` does.
 */
export function requestBody(metatype: Class, acceptsMail: boolean): Pick<Operation, 'requestBody'> {
  const { schema, isRequired } = schemaOf(metatype)
  if (schema === null) return {}
  const mail = acceptsMail ? { 'message/rfc822': { schema: Bytes } } : {}
  return { requestBody: { required: isRequired, content: { 'application/json': { schema }, ...mail } } }
}

/** The list of a class with `ListOf`, which an answer may have too. */
export function listSchema(metatype: Class): TSchema {
  const { item, maxItems } = new Reflector().get(ListOf, metatype)
  return Type.Unsafe({ type: 'array', maxItems, items: schemaOf(item).schema })
}

/** The schema of an object or of a list; null if its class has no properties. */
function schemaOf(metatype: Class): { schema: object | null; isRequired: boolean } {
  const reflector = new Reflector()
  const isList = reflector.get<ItemList | undefined>(ListOf.KEY, metatype) !== undefined
  const properties = propertiesOf(metatype)
  if (properties.length === 0 && !isList) return { schema: null, isRequired: false }
  const about = reflector.get<BodyDescription | undefined>(DescribeBody.KEY, metatype)
  if (about === undefined) throw new Error(`${metatype.name} has no description`)
  const { description, example, minProperties, variants } = about
  const described = { $id: metatype.name, description, examples: [example] }
  if (isList) return { schema: { ...described, ...listSchema(metatype) }, isRequired: true }
  const object = (own: readonly Property[], required: readonly string[]) => ({
    type: 'object',
    properties: Object.fromEntries(own.map((property) => [property.name, bodyProperty(property)])),
    ...(required.length === 0 ? {} : { required }),
    ...(minProperties === undefined ? {} : { minProperties }),
    additionalProperties: false,
  })
  const required = properties.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  // Each variant is a complete object, since generators ignore alternatives that only have `required`.
  const excluding = new Set(Object.values(variants ?? {}).flatMap((variant) => variant.required))
  const anyOf = Object.entries(variants ?? {}).map(([$id, variant]) => {
    const own = properties.filter(({ name }) => variant.required.includes(name) || !excluding.has(name))
    return { $id, description: variant.description, ...object(own, variant.required) }
  })
  const schema = { ...described, ...(variants === undefined ? object(properties, required) : { anyOf }) }
  const isRequired = required.length > 0 || minProperties !== undefined || variants !== undefined
  return { schema, isRequired }
}

/** Throws if a property has no description, or a rule without a schema. */
function propertiesOf(metatype: Class): Property[] {
  const storage = getMetadataStorage()
  const rules = storage.getTargetValidationMetadatas(metatype, '', false, false)
  const defaults = new metatype() as Readonly<Record<string, unknown>>
  return Object.entries(storage.groupByPropertyName(rules)).map(([name, own]) => {
    const about = descriptionOf(metatype, name)
    if (about === undefined) throw new Error(`${metatype.name}.${name} has no description`)
    const conditions: ((object: object, value: unknown) => boolean)[] = []
    const [schema, items]: [object, object] = [{}, {}]
    for (const { type, name: rule = '', constraints, each } of own) {
      // class-validator omits `constraints` if a rule has none.
      const [constraint] = (constraints as [unknown] | undefined) ?? []
      const known = RULES[rule]
      if (type === 'conditionalValidation') conditions.push(constraint as (typeof conditions)[number])
      else if (known !== undefined) Object.assign(each ? items : schema, known(constraint))
      else if (typeof constraint === 'object') Object.assign(schema, constraint)
      else if (Object.keys(about.schema).length === 0)
        throw new Error(`${metatype.name}.${name} has the rule ${rule}, which has no JSON Schema`)
    }
    const isChecked = (value: unknown) => conditions.every((holds) => holds({ [name]: value }, value))
    const list = listAt(metatype, name)
    if (list !== undefined) {
      Object.assign(schema, { maxItems: list.maxItems })
      Object.assign(items, schemaOf(list.item).schema)
    }
    const preset = defaults[name]
    return {
      name,
      description: about.description,
      isRequired: isChecked(undefined) && preset === undefined,
      allowsNull: !isChecked(null),
      schema: {
        ...schema,
        ...(Object.keys(items).length === 0 ? {} : { items }),
        ...about.schema,
        ...(preset === undefined ? {} : { default: preset }),
      },
    }
  })
}

/** The default is in the description, since openapi-typescript requires a property with a `default`. */
function bodyProperty({ description, allowsNull, schema }: Property): object {
  const { default: preset, ...own } = schema
  const text = preset === undefined ? description : `${description} Default: \`${JSON.stringify(preset)}\`.`
  if ('$id' in own) {
    return { description: text, ...(allowsNull ? { anyOf: [own, { type: 'null' }] } : { $ref: own }) }
  }
  return {
    description: text,
    ...own,
    ...(allowsNull && own.type !== undefined ? { type: [own.type, 'null'].flat() } : {}),
  }
}

function sourceOf(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) throw new TypeError('a rule `matches` without a regular expression')
  if (/[ism]/.test(pattern.flags)) throw new Error(`JSON Schema has no flags: ${String(pattern)}`)
  return pattern.source
}
