import { bodyOf, type Document, nameIn, type Operation, type SchemaJson } from './openapi-json.js'

export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** One line of Markdown with `code`, as HTML. */
export function inline(text: string): string {
  return escaped(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>')
}

/** Paragraphs of Markdown, as HTML. */
export function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .map((paragraph) => `<p>${inline(paragraph)}</p>`)
    .join('\n')
}

/** Resolves a reference to a schema. Returns any other schema unchanged. */
export function resolved(schema: SchemaJson, { components }: Document): SchemaJson {
  return schema.$ref === undefined ? schema : (components.schemas[nameIn(schema.$ref)] ?? {})
}

/** A short description of a schema as HTML: `string, at most 200 characters`. Named schemas are links. */
export function schemaText(schema: SchemaJson): string {
  const { minimum, maximum, minLength, maxLength, maxItems, maxProperties, examples = [] } = schema
  const words = [
    typeText(schema),
    rangeText(minimum, maximum, ''),
    rangeText(minLength, maxLength, ' characters'),
    rangeText(undefined, maxItems, ' times'),
    rangeText(undefined, maxProperties, ' pairs'),
    schema.default === undefined ? '' : `default <code>${escaped(JSON.stringify(schema.default))}</code>`,
    examples.length === 0 ? '' : `such as ${examples.map(code).join(', ')}`,
  ]
  return words.filter(Boolean).join(', ')
}

function typeText(schema: SchemaJson): string {
  const { $ref, anyOf, items, type = 'anything', format, properties, additionalProperties } = schema
  if ($ref !== undefined) return `<a href="#${nameIn($ref)}">${nameIn($ref)}</a>`
  if (anyOf !== undefined) return anyOf.map(typeText).join(' or ')
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(code).join(' or ')
  if (items !== undefined) return `list of ${schemaText(items)}`
  if (typeof additionalProperties === 'object') return `object of ${typeText(additionalProperties)}s`
  if (format === 'date-time') return 'time'
  const text = [type].flat().join(' or ')
  if (properties === undefined) return text
  const each = Object.entries(properties).map(([name, own]) => `${code(name)} (${schemaText(own)})`)
  return `${text} with ${each.join(', ')}`
}

function rangeText(min: number | undefined, max: number | undefined, unit: string): string {
  if (min !== undefined && max !== undefined) return `${min} to ${max}${unit}`
  if (min !== undefined) return `at least ${min}${unit}`
  return max === undefined ? '' : `at most ${max}${unit}`
}

function code(value: unknown): string {
  return `<code>${escaped(typeof value === 'string' ? value : JSON.stringify(value))}</code>`
}

/**
 * A curl command that sends an operation's request with the examples of the document. It reads the key from
 * `MAYFLY_KEY`. Throws if a body has no example.
 */
export function curlCommand(method: string, path: string, operation: Operation, document: Document): string {
  const url = `${document.servers[0]?.url ?? ''}${examplePath(path, operation)}`
  const lines = [['curl', ...curlFlags(method, operation), quoted(url)].join(' ')]
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $MAYFLY_KEY"')
  const body = bodyOf(operation)
  if (body !== null) {
    const [example] = resolved(body.schema, document).examples ?? []
    if (example === undefined) throw new Error(`the body of ${operation.operationId} has no example`)
    lines.push(`-H 'Content-Type: ${body.mediaType}'`, `-d ${quoted(JSON.stringify(example))}`)
  }
  return lines.join(' \\\n  ')
}

/** Streams are printed as they arrive, files are saved under their own names. */
function curlFlags(method: string, { responses }: Operation): string[] {
  if (method !== 'GET') return ['-X', method]
  const contents = Object.values(responses).flatMap((response) =>
    'content' in response ? Object.entries(response.content ?? {}) : [],
  )
  if (contents.some(([type]) => type === 'text/event-stream')) return ['-N']
  return contents.some(([, { schema }]) => schema.format === 'binary') ? ['-OJ'] : []
}

/** A path and query with an example for each required parameter. */
function examplePath(path: string, { parameters }: Operation): string {
  const query = new URLSearchParams()
  let filled = path
  for (const { name, in: location, schema } of parameters.filter(({ required }) => required)) {
    const [example = schema.minimum] = schema.examples ?? schema.enum ?? []
    for (const value of [example].flat()) {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      if (location === 'path') filled = filled.replace(`{${name}}`, text)
      if (location === 'query') query.append(name, text)
    }
  }
  return query.size === 0 ? filled : `${filled}?${query.toString()}`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
