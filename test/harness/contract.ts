import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { Document, Method, Operation, ResponseJson, SchemaJson } from '#apps/api/openapi/openapi-json.js'

/** An answer to check against the document. */
export interface ObservedAnswer {
  method: string
  /** Includes the query. */
  path: string
  status: number
  headers: Headers
  /** Parsed if it is JSON; not read for HEAD. */
  body: unknown
}

/** The OpenAPI document of the server does not allow its answer. */
export class ContractError extends Error {
  override readonly name = 'ContractError'
}

const PROBLEM = '/components/schemas/Problem'

/** The answers that a server's OpenAPI document allows. */
export class Contract {
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: false })
  private readonly texts = new Ajv2020({ strict: false, coerceTypes: true })
  private readonly paths: { segments: string[]; path: string }[]

  constructor(private readonly document: Document) {
    for (const ajv of [this.ajv, this.texts]) formats.default(ajv)
    const { schemas } = document.components
    const closed = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, close(schema)]))
    const strict = { ...document, components: { ...document.components, schemas: closed } }
    this.ajv.addSchema(strict, 'contract', undefined, false)
    this.paths = Object.keys(document.paths)
      .map((path) => ({ segments: path.split('/'), path }))
      .toSorted((one, other) => count(one.path) - count(other.path))
  }

  /** Throws ContractError if the document does not allow the answer. */
  check(observed: ObservedAnswer): void {
    const violations = this.violationsOf(observed)
    if (violations.length === 0) return
    const { method, path, status, body } = observed
    const shown = JSON.stringify(body ?? null).slice(0, 500)
    throw new ContractError(
      `${method} ${path.slice(0, 200)} answered ${status}, but ${violations.join('; ')}: ${shown}`,
    )
  }

  private violationsOf(observed: ObservedAnswer): string[] {
    const { method, status, headers, body } = observed
    // A CORS preflight (Fetch, section 4.8) is not an operation.
    if (method === 'OPTIONS' && status === 204) return []
    // The console's own requests are no part of the document.
    if (observed.path.startsWith('/console')) return []
    const found = this.find(observed)
    // Paths that are not in the document may only be refused.
    if (found === null)
      return status < 400 ? ['the document lacks it'] : this.bodyViolations(observed, PROBLEM)
    const { operation, at } = found
    const answer = operation.responses[status]
    if (answer === undefined) return ['the document lacks that status']
    const pointer = '$ref' in answer ? answer.$ref.slice(1) : `${at}/responses/${status}`
    const { content = {}, headers: described } = this.responseOf(answer)
    const violations = this.headerViolations(headers, described)
    const type = headers.get('content-type')?.split(';')[0] ?? 'none'
    const known = [type, '*/*'].find((name) => name in content)
    if (known === undefined) return [...violations, `the document lacks the media type ${type}`]
    if (method === 'HEAD' || !type.endsWith('json')) return violations
    // The document has the schema of a line, since OpenAPI 3.1 can't describe a sequence of them.
    const bodies = known === 'application/x-ndjson' ? linesOf(body) : [body]
    const schema = `${pointer}/content/${escape(known)}/schema`
    return [
      ...violations,
      ...bodies.flatMap((each) => this.bodyViolations({ ...observed, body: each }, schema)),
    ]
  }

  private find({ method, path }: ObservedAnswer): { operation: Operation; at: string } | null {
    const [pathname = ''] = path.split('?')
    const segments = pathname.split('/')
    const name = (method === 'HEAD' ? 'get' : method.toLowerCase()) as Method
    const entry = this.paths.find((each) => matchesTemplate(each.segments, segments))
    const operation = entry === undefined ? undefined : this.document.paths[entry.path]?.[name]
    if (entry === undefined || operation === undefined) return null
    return { operation, at: `/paths/${escape(entry.path)}/${name}` }
  }

  private responseOf(answer: ResponseJson | { $ref: string }): ResponseJson {
    if (!('$ref' in answer)) return answer
    const named = this.document.components.responses[answer.$ref.split('/').at(-1) ?? '']
    if (named === undefined) throw new Error(`the document has an unresolved reference: ${answer.$ref}`)
    return named
  }

  private headerViolations(headers: Headers, described: ResponseJson['headers']): string[] {
    return Object.entries(described).flatMap(([name, given]) => {
      const { required, schema } = 'required' in given ? given : this.headerOf(name)
      const value = headers.get(name)
      if (value === null) return required ? [`the header ${name} is missing`] : []
      return this.texts.validate(schema, value) ? [] : [`the header ${name} is ${value}`]
    })
  }

  private headerOf(name: string) {
    const header = this.document.components.headers[name]
    if (header === undefined) throw new Error(`the document does not describe the header ${name}`)
    return header
  }

  private bodyViolations({ method, body }: ObservedAnswer, pointer: string): string[] {
    if (method === 'HEAD') return []
    const validate: ValidateFunction =
      this.ajv.getSchema(`contract#${pointer}`) ?? this.ajv.compile({ $ref: `contract#${pointer}` })
    if (validate(body)) return []
    const errors: ErrorObject[] = validate.errors ?? []
    return errors.map(({ instancePath, message, params }) =>
      [instancePath || 'the body', message, JSON.stringify(params)].join(' '),
    )
  }
}

const contracts = new Map<string, Promise<Contract | null>>()

/** Checks an answer against the document of its server. Throws ContractError. */
export async function checkAnswer(url: string, observed: ObservedAnswer): Promise<void> {
  const reading = contracts.get(url) ?? readContract(url)
  contracts.set(url, reading)
  const contract = await reading
  if (contract === null) contracts.delete(url)
  else contract.check(observed)
}

/** Null if the server has no document: it is shutting down, or it is not the API. */
async function readContract(url: string): Promise<Contract | null> {
  try {
    const answer = await fetch(`${url}/openapi.json`)
    if (answer.status === 404 || answer.status === 503) return null
    if (answer.status !== 200) throw new ContractError(`the document was answered ${answer.status}`)
    return new Contract((await answer.json()) as Document)
  } catch (error) {
    // fetch throws a TypeError if it can't connect or the connection is lost.
    if (error instanceof TypeError) return null
    throw error
  }
}

/**
 * Clients must ignore unknown properties, so the document allows additional ones. Here, each property that is not
 * described is a violation.
 */
function close(schema: SchemaJson): SchemaJson {
  const { properties, items, anyOf } = schema
  return {
    ...schema,
    ...(items === undefined ? {} : { items: close(items) }),
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map(close) }),
    ...(properties === undefined
      ? {}
      : {
          additionalProperties: false,
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [name, close(property)]),
          ),
        }),
  }
}

/** The values of lines of JSON. */
function linesOf(body: unknown): unknown[] {
  if (typeof body !== 'string') throw new TypeError('lines of JSON are not text')
  return body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown)
}

function matchesTemplate(template: readonly string[], segments: readonly string[]): boolean {
  if (template.length !== segments.length) return false
  return template.every((part, index) => part.startsWith('{') || part === segments[index])
}

/** The number of parameters of a path. Paths with fewer match first. */
function count(path: string): number {
  return path.split('{').length
}

/** A name in a JSON pointer that is a URI fragment (RFC 6901, section 6). */
function escape(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
}
