import { escaped } from './markup.js'
import type { Document, SchemaJson } from './openapi-json.js'

/** The name that a reference ends with. */
export function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

/** The schema that a reference leads to; any other schema itself. */
export function resolved(schema: SchemaJson, { components }: Pick<Document, 'components'>): SchemaJson {
  return schema.$ref === undefined ? schema : (components.schemas[nameIn(schema.$ref)] ?? {})
}

/** A schema in a few words of HTML: `string, at most 200 characters`; named ones are links. */
export function schemaText(schema: SchemaJson): string {
  const bounds = [typeText(schema), ...boundsOf(schema)]
  if (schema.default !== undefined)
    bounds.push(`default <code>${escaped(JSON.stringify(schema.default))}</code>`)
  const examples = schema.examples?.map(code) ?? []
  if (examples.length > 0) bounds.push(`such as ${examples.join(', ')}`)
  return bounds.join(', ')
}

function typeText(schema: SchemaJson): string {
  const { $ref, anyOf, items, type, format, properties, additionalProperties } = schema
  if ($ref !== undefined) return `<a href="#${nameIn($ref)}">${nameIn($ref)}</a>`
  if (anyOf !== undefined) return anyOf.map(typeText).join(' or ')
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(code).join(' or ')
  if (items !== undefined) return `list of ${schemaText(items)}`
  if (typeof additionalProperties === 'object') return `object of ${typeText(additionalProperties)}s`
  if (format === 'date-time') return 'time'
  const text = [type ?? 'anything'].flat().join(' or ')
  return properties === undefined ? text : `${text} with ${propertiesText(properties)}`
}

function propertiesText(properties: Record<string, SchemaJson>): string {
  return Object.entries(properties)
    .map(([name, schema]) => `${code(name)} (${schemaText(schema)})`)
    .join(', ')
}

function boundsOf(schema: SchemaJson): string[] {
  const { minimum, maximum, minLength, maxLength, maxItems, maxProperties } = schema
  const range =
    minimum !== undefined && maximum !== undefined
      ? [`${minimum} to ${maximum}`]
      : [
          ...(minimum === undefined ? [] : [`at least ${minimum}`]),
          ...(maximum === undefined ? [] : [`at most ${maximum}`]),
        ]
  if (minLength !== undefined && maxLength !== undefined)
    range.push(`${minLength} to ${maxLength} characters`)
  else if (minLength !== undefined) range.push(`at least ${minLength} characters`)
  else if (maxLength !== undefined) range.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) range.push(`at most ${maxItems} times`)
  if (maxProperties !== undefined) range.push(`at most ${maxProperties} pairs`)
  return range
}

function code(value: unknown): string {
  return `<code>${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</code>`
}
