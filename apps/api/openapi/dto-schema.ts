import type { Type } from '@nestjs/common'
import { getMetadataStorage } from 'class-validator'
import { aboutOf, bodyDescriptionOf } from './describe.js'
import type { NamedSchemas } from './named-schemas.js'
import type { SchemaJson } from './openapi-json.js'

export interface PropertySchema {
  name: string
  description: string
  isRequired: boolean
  /** Of a body: null counts as nothing. */
  takesNull: boolean
  schema: SchemaJson
}

type Rule = (...constraints: unknown[]) => Record<string, unknown>

/** What class-validator's rules are in JSON Schema. Of another rule, what `Says` adds must tell all. */
const RULES: Readonly<Record<string, Rule>> = {
  isString: () => ({ type: 'string' }),
  isBoolean: () => ({ type: 'boolean' }),
  isInt: () => ({ type: 'integer' }),
  isArray: () => ({ type: 'array' }),
  min: (minimum) => ({ minimum }),
  max: (maximum) => ({ maximum }),
  minLength: (minLength) => ({ minLength }),
  maxLength: (maxLength) => ({ maxLength }),
  isIn: (values) => ({ type: 'string', enum: values }),
  equals: (value) => ({ const: value }),
  matches: (pattern) => ({ type: 'string', pattern: sourceOf(pattern) }),
  arrayMinSize: (minItems) => ({ minItems }),
  arrayMaxSize: (maxItems) => ({ maxItems }),
  arrayNotEmpty: () => ({ minItems: 1 }),
  arrayUnique: () => ({ uniqueItems: true }),
  // JSON Schema knows no others than whole characters.
  isWellFormed: () => ({}),
}

/** The properties that a class takes, from its rules. Throws if one is not described, or by rules unknown here. */
export function propertiesOf(metatype: Type): PropertySchema[] {
  const rules = getMetadataStorage().getTargetValidationMetadatas(metatype, '', false, false)
  const names = [...new Set(rules.map(({ propertyName }) => propertyName))]
  const defaults = new metatype() as Readonly<Record<string, unknown>>
  return names.map((name) => {
    const about = aboutOf(metatype.prototype as object, name)
    if (about === undefined) throw new Error(`${metatype.name}.${name} does not say what it is for`)
    const conditions: Condition[] = []
    const schema: Record<string, unknown> = {}
    const items: Record<string, unknown> = {}
    for (const rule of rules.filter(({ propertyName }) => propertyName === name)) {
      // class-validator leaves them out where a rule has none.
      const constraints = (rule.constraints as unknown[] | undefined) ?? []
      if (rule.type === 'conditionalValidation') {
        conditions.push(constraints[0] as Condition)
        continue
      }
      const known = RULES[rule.name ?? '']
      if (known === undefined && Object.keys(about.schema).length === 0) {
        throw new Error(`${metatype.name}.${name} has the rule ${rule.name}, which says nothing of its form`)
      }
      Object.assign(rule.each ? items : schema, known?.(...constraints))
    }
    const whole = {
      ...schema,
      ...(Object.keys(items).length === 0 ? {} : { items }),
      ...about.schema,
      ...(defaults[name] === undefined ? {} : { default: defaults[name] }),
    }
    return {
      name,
      description: about.description,
      isRequired: isChecked(conditions, name, undefined) && defaults[name] === undefined,
      takesNull: !isChecked(conditions, name, null),
      schema: whole,
    }
  })
}

/** A body, its schema named after its class; null for a class without properties. */
export function bodyOf(
  metatype: Type,
  schemas: NamedSchemas,
): { isRequired: boolean; schema: SchemaJson } | null {
  const properties = propertiesOf(metatype)
  if (properties.length === 0) return null
  const { description, example, minProperties, variants } = bodyDescriptionOf(metatype)
  const whole = { $id: metatype.name, description, examples: [example] }
  const object = (only: readonly PropertySchema[], required: readonly string[]): SchemaJson => ({
    type: 'object',
    properties: Object.fromEntries(
      only.map((property) => [property.name, propertySchema(property, schemas)]),
    ),
    ...(required.length === 0 ? {} : { required: [...required] }),
    ...(minProperties === undefined ? {} : { minProperties }),
    additionalProperties: false,
  })
  if (variants === undefined) {
    const required = properties.filter(({ isRequired }) => isRequired).map(({ name }) => name)
    const schema = schemas.name({ ...whole, ...object(properties, required) })
    return { isRequired: required.length > 0 || minProperties !== undefined, schema }
  }
  // Each variant is a whole object: generators ignore alternatives of `required` alone.
  const special = new Set(Object.values(variants).flatMap(({ required }) => required))
  const anyOf = Object.entries(variants).map(([$id, { description, required }]) => {
    const own = properties.filter(({ name }) => required.includes(name) || !special.has(name))
    return { $id, description, ...object(own, required) }
  })
  return { isRequired: true, schema: schemas.name({ ...whole, anyOf }) }
}

function propertySchema(
  { description, takesNull, schema }: PropertySchema,
  schemas: NamedSchemas,
): SchemaJson {
  const { default: preset, ...named } = schemas.name(schema)
  return {
    // openapi-typescript makes a property with a `default` a required one.
    description:
      preset === undefined ? description : `${description} Default: \`${JSON.stringify(preset)}\`.`,
    ...(takesNull ? orNull(named) : named),
  }
}

type Condition = (object: object, value: unknown) => boolean

function isChecked(conditions: readonly Condition[], name: string, value: unknown): boolean {
  return conditions.every((condition) => condition({ [name]: value }, value))
}

function orNull(schema: SchemaJson): SchemaJson {
  if (schema.$ref !== undefined) return { anyOf: [schema, { type: 'null' }] }
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema
}

function sourceOf(pattern: unknown): string {
  if (!(pattern instanceof RegExp)) throw new TypeError('a rule `matches` without a regular expression')
  if (/[ism]/.test(pattern.flags)) throw new Error(`JSON Schema has no flags: ${String(pattern)}`)
  return pattern.source
}
