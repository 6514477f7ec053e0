import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { Document, Method, Operation, ResponseJson, SchemaJson } from '#apps/api/openapi/openapi-json.js'

/** An answer to be held against the document. */
export interface Observed {
  method: string
  /** With its query. */
  path: string
  status: number
  headers: Headers
  /** Parsed where it is JSON, and not read at all for HEAD. */
  body: unknown
}

/** An answer that the document of its server does not allow. */
export class ContractError extends Error {
  override readonly name = 'ContractError'
}

const PROBLEM = '/components/schemas/Problem'

/** What a server's own OpenAPI document says that it answers. */
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
  check(observed: Observed): void {
    const faults = this.faultsOf(observed)
    if (faults.length === 0) return
    const { method, path, status, body } = observed
    const shown = JSON.stringify(body ?? null).slice(0, 500)
    throw new ContractError(
      `${method} ${path.slice(0, 200)} answered ${status}, but ${faults.join('; ')}: ${shown}`,
    )
  }

  private faultsOf(observed: Observed): string[] {
    const { method, status, headers } = observed
    // What a browser asks before a request of another origin's page (Fetch, section 4.8) is no operation.
    if (method === 'OPTIONS' && status === 204) return []
    const found = this.find(observed)
    // What is not in the document can only be refused.
    if (found === null) return status < 400 ? ['the document lacks it'] : this.bodyFaults(observed, PROBLEM)
    const { operation, at } = found
    const answer = operation.responses[status]
    if (answer === undefined) return ['the document lacks that status']
    const pointer = '$ref' in answer ? answer.$ref.slice(1) : `${at}/responses/${status}`
    const { content = {}, headers: described } = this.responseOf(answer)
    const faults = this.headerFaults(headers, described)
    const type = headers.get('content-type')?.split(';')[0] ?? 'none'
    const known = [type, '*/*'].find((name) => name in content)
    if (known === undefined) return [...faults, `the document lacks the media type ${type}`]
    if (method === 'HEAD' || !type.endsWith('json')) return faults
    return [...faults, ...this.bodyFaults(observed, `${pointer}/content/${escape(known)}/schema`)]
  }

  private find({ method, path }: Observed): { operation: Operation; at: string } | null {
    const [place = ''] = path.split('?')
    const segments = place.split('/')
    const name = (method === 'HEAD' ? 'get' : method.toLowerCase()) as Method
    const entry = this.paths.find((each) => isLike(each.segments, segments))
    const operation = entry === undefined ? undefined : this.document.paths[entry.path]?.[name]
    if (entry === undefined || operation === undefined) return null
    return { operation, at: `/paths/${escape(entry.path)}/${name}` }
  }

  private responseOf(answer: ResponseJson | { $ref: string }): ResponseJson {
    if (!('$ref' in answer)) return answer
    const named = this.document.components.responses[answer.$ref.split('/').at(-1) ?? '']
    if (named === undefined) throw new Error(`the document refers to nothing: ${answer.$ref}`)
    return named
  }

  private headerFaults(headers: Headers, described: ResponseJson['headers']): string[] {
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

  private bodyFaults({ method, body }: Observed, pointer: string): string[] {
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

const known = new Map<string, Promise<Contract | null>>()

/** Holds an answer against the document that its server has. Throws ContractError. */
export async function checkAnswer(url: string, observed: Observed): Promise<void> {
  const reading = known.get(url) ?? readContract(url)
  known.set(url, reading)
  const contract = await reading
  if (contract === null) known.delete(url)
  else contract.check(observed)
}

/** Null if there is none to be had: from a server that ends, or one that is not the API. */
async function readContract(url: string): Promise<Contract | null> {
  try {
    const answer = await fetch(`${url}/openapi.json`)
    if (answer.status === 404 || answer.status === 503) return null
    if (answer.status !== 200) throw new ContractError(`the document was answered ${answer.status}`)
    return new Contract((await answer.json()) as Document)
  } catch (error) {
    // What fetch throws if there is no connection, or no longer.
    if (error instanceof TypeError) return null
    throw error
  }
}

/**
 * Clients must bear properties that they don't know, so the document leaves objects open; here each property that is
 * not described is a fault.
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

function isLike(template: readonly string[], segments: readonly string[]): boolean {
  if (template.length !== segments.length) return false
  return template.every((part, index) => part.startsWith('{') || part === segments[index])
}

/** How many parameters a path has: one with fewer is meant first. */
function count(path: string): number {
  return path.split('{').length
}

/** A name within a pointer that is a fragment (RFC 6901, section 6). */
function escape(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
}
