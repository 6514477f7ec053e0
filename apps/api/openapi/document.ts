import { isDeepStrictEqual } from 'node:util'
import type { Type } from '@nestjs/common'
import { idPattern } from '#libs/domain/ids/typeid.js'
import { EVENT_BODIES } from '../events/event-schemas.js'
import { RESPONSE_HEADERS } from '../http/headers.js'
import { prepareAnswer, type PreparedAnswer } from '../http/prepared-answers.js'
import { PROBLEM_CODES } from '../http/problems.js'
import { curlCommand } from './curl-command.js'
import { TAGS } from './describe.js'
import { operationsOf, type Document, type Operation, type Parameter } from './openapi-json.js'
import { routesOf } from './operations.js'
import { groupByStatus, problemResponse } from './problem-responses.js'

const INFO = {
  title: 'Mayfly',
  version: '1',
  summary: 'Disposable email inboxes for tests.',
  description: [
    'One POST creates an inbox. Mail to its address can be read as JSON.',
    'Property names are snake_case, times are RFC 3339 in UTC with milliseconds, and lists are arrays. `/v1/emails` and ' +
      '`/v1/inboxes` are the same resource. An empty body counts as `{}`. A property or query parameter that is not in ' +
      'this document is refused. Version 1 may get new properties: clients must ignore properties that they do not know.',
    'Every error is a problem as in RFC 9457. An unknown path is answered 404 `not-found`, and a method that a path does ' +
      'not support 405 `method-not-allowed` with `Allow`. Every path that supports GET also supports HEAD.',
  ].join('\n\n'),
  license: { name: 'MIT', identifier: 'MIT' },
}

const ALL_TAGS = {
  ...TAGS,
  Emails:
    'Another path for inboxes. Each operation does the same as the operation in its `x-alias-of`, with links under `/v1/emails`.',
}

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description:
    '**API key**: `Authorization: Bearer mf_<environment>_<secret>`. A key can only access the inboxes of its environment. Scopes: ' +
    '`inboxes`; `read`, the GETs of `inboxes`; `audit`, the list of inboxes and their history, without content; `admin`, the whole account; ' +
    '`operator`, all accounts. A key needs one of the scopes that the operation names.',
}

const INBOX_TOKEN = {
  type: 'http',
  scheme: 'bearer',
  description:
    '**Inbox token**: `Authorization: Bearer mft_…`. A token for one inbox, from `POST /v1/inboxes/{id}/tokens`. With the access `owner` it ' +
    'may also make the requests for `read`. Any other inbox is answered 404. 60 requests a minute.',
}

/** The OpenAPI document as JSON. It is made at the first request, when the public URL is known. */
export class ApiDocument {
  private made: Promise<PreparedAnswer> | null = null

  constructor(
    private readonly controllers: readonly Type[],
    private readonly publicUrl: () => string,
  ) {}

  read(): Promise<PreparedAnswer> {
    return (this.made ??= prepareAnswer(JSON.stringify(describeApi(this.controllers, this.publicUrl()))))
  }
}

/** Makes the OpenAPI document of controllers. Throws if a description or an example of a body is missing. */
export function describeApi(controllers: readonly Type[], publicUrl: string): Document {
  const routes = routesOf(controllers)
  const paths: Document['paths'] = {}
  for (const { path, method, operation } of routes) paths[path] = { ...paths[path], [method]: operation }
  const single = PROBLEM_CODES.flatMap((code) => groupByStatus([code]))
  const groups = [...single, ...routes.flatMap(({ problems }) => problems)]
  const responses = groups.map((group) => [group.name, problemResponse(group, publicUrl)] as const)
  const document = withNamedSchemas({
    openapi: '3.1.1',
    info: INFO,
    servers: [{ url: publicUrl }],
    tags: Object.entries(ALL_TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(EVENT_BODIES.map((event) => [event.type, { post: sentOperation(event) }])),
    components: {
      schemas: {},
      responses: Object.fromEntries(responses),
      headers: RESPONSE_HEADERS,
      securitySchemes: { apiKey: API_KEY, inboxToken: INBOX_TOKEN },
    },
  })
  for (const { path, method, operation } of operationsOf(document)) {
    if (operation['x-alias-of'] !== undefined) continue
    operation['x-code-samples'] = [
      { lang: 'bash', label: 'curl', source: curlCommand(method.toUpperCase(), path, operation, document) },
    ]
  }
  return document
}

const SENT_HEADERS = [
  sentHeader(
    'webhook-id',
    idPattern('dlv'),
    'The id of the delivery. It is the same for all attempts and for replays.',
  ),
  sentHeader('webhook-timestamp', '^[0-9]+$', 'The time of the attempt in Unix seconds.'),
  sentHeader(
    'webhook-signature',
    '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$',
    '`v1,` and the base64 of the HMAC-SHA256 of id, timestamp and body, joined with full stops. During the grace period ' +
      'of a rotation there are two signatures, separated by a space.',
  ),
]

function sentHeader(name: string, pattern: string, description: string): Parameter {
  return { name, in: 'header', required: true, description, schema: { type: 'string', pattern } }
}

/** The request that delivers an event to a webhook. */
function sentOperation({ type, name, summary, schema }: (typeof EVENT_BODIES)[number]): Operation {
  return {
    operationId: name.charAt(0).toLowerCase() + name.slice(1),
    tags: ['Webhooks'],
    summary,
    description:
      `The request that delivers \`${type}\` to a webhook, at least once and in any order, signed as in Standard ` +
      'Webhooks.',
    security: [],
    parameters: SENT_HEADERS,
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses: {
      '2XX': { description: 'The delivery succeeded.', headers: {} },
      '410': {
        description: 'The endpoint accepts no more deliveries. The webhook is disabled.',
        headers: {},
      },
      default: { description: 'The delivery is retried later.', headers: {} },
    },
  }
}

/**
 * Moves each schema with an `$id` to the components, and replaces it with a reference. A `$ref` may contain such a
 * schema. Throws if two schemas have the same name.
 */
function withNamedSchemas(document: Document): Document {
  const named = new Map<string, unknown>()
  const replace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replace)
    if (typeof value !== 'object' || value === null) return value
    const { $id: name, ...members } = value as Record<string, unknown>
    // typebox stores its own data in properties with a tilde.
    const entries = Object.entries(members).filter(([key]) => !key.startsWith('~'))
    const schema = Object.fromEntries(entries.map(([key, member]) => [key, replace(member)]))
    if (typeof schema.$ref === 'object') Object.assign(schema, schema.$ref)
    if (typeof name !== 'string') return schema
    if (!isDeepStrictEqual(named.get(name) ?? schema, schema))
      throw new Error(`two schemas have the name ${name}`)
    named.set(name, schema)
    return { $ref: `#/components/schemas/${name}` }
  }
  const { components, ...rest } = replace(document) as Document
  const schemas = Object.fromEntries([...named].toSorted(([one], [other]) => one.localeCompare(other)))
  return { ...rest, components: { ...components, schemas } } as Document
}
