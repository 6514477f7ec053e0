import type { Document, Operation, SchemaJson } from './openapi-json.js'
import { resolved } from './schema-text.js'

/**
 * A command that sends an operation's request with the document's own examples. The shell takes the key from
 * `MAYFLY_KEY`. Throws if a body has no example.
 */
export function curlCommand(method: string, path: string, operation: Operation, document: Document): string {
  const url = `${document.servers[0]?.url ?? ''}${pathOf(path, operation)}`
  const lines = [['curl', ...flagsOf(method, operation), quoted(url)].join(' ')]
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $MAYFLY_KEY"')
  const body = operation.requestBody?.content['application/json'].schema
  if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'")
    lines.push(`-d ${quoted(JSON.stringify(exampleOf(body, document)))}`)
  }
  return lines.join(' \\\n  ')
}

/** A stream is printed as it comes, a file is saved under its own name. */
function flagsOf(method: string, { responses }: Operation): string[] {
  if (method !== 'GET') return ['-X', method]
  const contents = Object.values(responses).flatMap((answer) =>
    'content' in answer ? Object.entries(answer.content ?? {}) : [],
  )
  if (contents.some(([type]) => type === 'text/event-stream')) return ['-N']
  return contents.some(([, { schema }]) => schema.format === 'binary') ? ['-OJ'] : []
}

/** With an example of each required parameter. */
function pathOf(path: string, { parameters }: Operation): string {
  const query = new URLSearchParams()
  let filled = path
  for (const { name, in: location, required, schema } of parameters) {
    if (required !== true) continue
    const [example = schema.minimum] = schema.examples ?? schema.enum ?? []
    for (const value of [example].flat()) {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      if (location === 'path') filled = filled.replace(`{${name}}`, text)
      if (location === 'query') query.append(name, text)
    }
  }
  return query.size === 0 ? filled : `${filled}?${query.toString()}`
}

function exampleOf(schema: SchemaJson, document: Document): unknown {
  const { examples, description = '' } = resolved(schema, document)
  if (examples?.[0] === undefined) throw new Error(`this body has no example: ${description}`)
  return examples[0]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
