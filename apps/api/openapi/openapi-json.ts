export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The part of OpenAPI 3.1 that the document uses. */
export interface Document {
  openapi: '3.1.1'
  info: { title: string; version: string; summary: string; description: string; license: object }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Partial<Record<Method, Operation>>>
  /** The requests that Mayfly sends, by the name of the event. */
  webhooks: Record<string, { post: Operation }>
  components: {
    schemas: Record<string, SchemaJson>
    responses: Record<string, ResponseJson>
    headers: Record<string, HeaderJson>
    securitySchemes: Record<'apiKey' | 'inboxToken', { type: string; scheme: string; description: string }>
  }
}

export interface Operation {
  operationId: string
  /** The operation that this one is an alias of. */
  'x-alias-of'?: string
  /** Shown by viewers of OpenAPI documents. */
  'x-code-samples'?: { lang: string; label: string; source: string }[]
  tags: string[]
  summary: string
  description?: string
  /** One of these is enough. */
  security: { apiKey?: string[]; inboxToken?: string[] }[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: SchemaJson }> }
  responses: Record<string, ResponseJson | Reference>
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description: string
  schema: SchemaJson
}

export interface ResponseJson {
  description: string
  headers: Record<string, HeaderJson | Reference>
  content?: Record<string, { schema: SchemaJson; examples?: object }>
}

export interface HeaderJson {
  description: string
  required: boolean
  schema: SchemaJson
}

export interface Reference {
  $ref: string
}

/** The part of JSON Schema that the document uses. */
export interface SchemaJson extends Partial<Reference> {
  type?: string | string[]
  anyOf?: SchemaJson[]
  items?: SchemaJson
  properties?: Record<string, SchemaJson>
  additionalProperties?: boolean | SchemaJson
  description?: string
  enum?: unknown[]
  format?: string
  pattern?: string
  default?: unknown
  examples?: unknown[]
  minimum?: number
}

/** The operations that Mayfly serves. */
export function operationsOf({ paths }: Document): { path: string; method: Method; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    (Object.entries(methods) as [Method, Operation][]).map(([method, operation]) => ({
      path,
      method,
      operation,
    })),
  )
}

/** The media type and the schema of a body, or of its lines; null without one. */
export function bodyOf({ requestBody }: Operation): { mediaType: string; schema: SchemaJson } | null {
  const [entry] = Object.entries(requestBody?.content ?? {})
  return entry === undefined ? null : { mediaType: entry[0], schema: entry[1].schema }
}

export function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

export function headerRefs(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
