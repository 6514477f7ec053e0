import { bodyOf, type Document, nameIn, type Operation, type SchemaJson } from './openapi-json.js'

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

/** Resolves a reference to a schema. Returns any other schema unchanged. */
function resolved(schema: SchemaJson, { components }: Document): SchemaJson {
  return schema.$ref === undefined ? schema : (components.schemas[nameIn(schema.$ref)] ?? {})
}
