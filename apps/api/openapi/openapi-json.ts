export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** As much of OpenAPI 3.1 as is made here. */
export interface Document {
  openapi: '3.1.1'
  info: { title: string; version: string; summary: string; description: string; license: object }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Partial<Record<Method, Operation>>>
  /** What is posted to others, by the name of the event. */
  webhooks: Record<string, { post: Operation }>
  components: {
    schemas: Record<string, SchemaJson>
    responses: Record<string, ResponseJson>
    headers: Record<string, HeaderJson>
    securitySchemes: { apiKey: { type: string; scheme: string; description: string } }
  }
}

export interface HeaderJson {
  description: string
  required: boolean
  schema: SchemaJson
}

export interface Operation {
  operationId: string
  /** The operation that this one is another name for. */
  'x-alias-of'?: string
  tags: string[]
  summary: string
  description?: string
  /** Any one of these is enough. */
  security: { apiKey: string[] }[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: { 'application/json': { schema: SchemaJson } } }
  responses: Record<string, ResponseJson | { $ref: string }>
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
  headers: Record<string, HeaderJson | { $ref: string }>
  content?: Record<string, { schema: SchemaJson; examples?: object }>
}

/** As much of JSON Schema as the document makes use of. */
export interface SchemaJson {
  $ref?: string
  type?: string | string[]
  anyOf?: SchemaJson[]
  items?: SchemaJson
  properties?: Record<string, SchemaJson>
  required?: string[]
  additionalProperties?: boolean | SchemaJson
  description?: string
  enum?: unknown[]
  const?: unknown
  format?: string
  pattern?: string
  default?: unknown
  examples?: unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
}
