import { isDeepStrictEqual } from 'node:util'
import type { Type } from '@nestjs/common'
import { idPattern } from '#libs/domain/ids/typeid.js'
import { WEBHOOK_EVENT_TYPES, type WebhookEventType } from '#libs/domain/webhook/events.js'
import { EVENT_BODIES } from '../events/event-schemas.js'
import { RESPONSE_HEADERS } from '../http/headers.js'
import { PROBLEM_CODES } from '../http/problems.js'
import { TAGS } from './describe.js'
import type { Document, Operation, Parameter } from './openapi-json.js'
import { routesOf } from './operations.js'
import { groupByStatus, problemResponse } from './problem-responses.js'

const INFO = {
  title: 'Mayfly',
  version: '1',
  summary: 'Disposable email inboxes for tests.',
  description: [
    'An inbox is one POST away; what is sent to its address comes back as JSON.',
    'Property names are snake_case, times RFC 3339 in UTC with milliseconds, lists bare arrays. `/v1/emails` and ' +
      '`/v1/inboxes` are one resource under two names. An empty body counts as `{}`. A property or query parameter ' +
      'that is not named here is refused. Within version 1 changes only add: clients ignore properties that they do ' +
      'not know.',
    'Every error is a problem of RFC 9457. A path that is not here answers 404 `not-found`, a method that a path ' +
      'does not take 405 `method-not-allowed` with `Allow`. Wherever GET is taken, HEAD is too.',
  ].join('\n\n'),
  license: { name: 'MIT', identifier: 'MIT' },
}

const ALL_TAGS = {
  ...TAGS,
  Emails:
    'Another name for inboxes: each operation does what the one named in its `x-alias-of` does, with links under `/v1/emails`.',
}

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description:
    '`Authorization: Bearer mf_<environment>_<secret>`. A key sees the inboxes of its environment alone. Scopes: ' +
    '`inboxes`; `read`, the GETs of `inboxes`; `audit`, the history without content; `admin`, the whole account; ' +
    '`operator`, all accounts. An operation takes a key with any one of the scopes that its security names.',
}

/** The OpenAPI document of some controllers. Throws if one of their handlers is not wholly described. */
export function describeApi(controllers: readonly Type[], publicUrl: string): Document {
  const routes = routesOf(controllers)
  const paths: Document['paths'] = {}
  for (const { path, method, operation } of routes) paths[path] = { ...paths[path], [method]: operation }
  const single = PROBLEM_CODES.flatMap((code) => groupByStatus([code]))
  const groups = [...single, ...routes.flatMap(({ problems }) => problems)]
  const responses = groups.map((group) => [group.name, problemResponse(group, publicUrl)] as const)
  return withNamedSchemas({
    openapi: '3.1.1',
    info: INFO,
    servers: [{ url: publicUrl }],
    tags: Object.entries(ALL_TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(WEBHOOK_EVENT_TYPES.map((type) => [type, { post: sentOperation(type) }])),
    components: {
      schemas: {},
      responses: Object.fromEntries(responses),
      headers: RESPONSE_HEADERS,
      securitySchemes: { apiKey: API_KEY },
    },
  })
}

const SENT: Record<WebhookEventType, { id: string; summary: string }> = {
  'message.received': { id: 'messageReceived', summary: 'Mail has come in' },
  'message.deleted': { id: 'messageDeleted', summary: 'A message was deleted' },
  'inbox.expired': { id: 'inboxExpired', summary: 'An inbox has expired' },
  'inbox.deleted': { id: 'inboxDeleted', summary: 'An inbox was deleted' },
}

const SENT_HEADERS = [
  sentHeader(
    'webhook-id',
    idPattern('dlv'),
    'The delivery: the same for each of its attempts, and for replays.',
  ),
  sentHeader('webhook-timestamp', '^[0-9]+$', 'Unix seconds of the attempt.'),
  sentHeader(
    'webhook-signature',
    '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$',
    '`v1,` and the base64 of HMAC-SHA256 over id, timestamp and body with full stops in between; during a rotation ' +
      'two of them, with a space in between.',
  ),
]

function sentHeader(name: string, pattern: string, description: string): Parameter {
  return { name, in: 'header', required: true, description, schema: { type: 'string', pattern } }
}

/** The request that an event sends to webhooks. */
function sentOperation(type: WebhookEventType): Operation {
  const { id, summary } = SENT[type]
  const schema: object = EVENT_BODIES[type]
  return {
    operationId: id,
    tags: ['Webhooks'],
    summary,
    description:
      `What webhooks are sent of \`${type}\`, at least once and in no promised order, signed as Standard Webhooks ` +
      'has it.',
    security: [],
    parameters: SENT_HEADERS,
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses: {
      '2XX': { description: 'It was taken.', headers: {} },
      '410': { description: 'It is taken no longer: the webhook is disabled.', headers: {} },
      default: { description: 'It is tried again later.', headers: {} },
    },
  }
}

/**
 * Moves each schema that has an `$id` to the components, and puts a reference in its place. A `$ref` may hold such a
 * schema itself. Throws if two schemas have one name.
 */
function withNamedSchemas(document: Document): Document {
  const named = new Map<string, unknown>()
  const replace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replace)
    if (typeof value !== 'object' || value === null) return value
    const { $id: name, ...members } = value as Record<string, unknown>
    // typebox keeps its own notes under keys with a tilde.
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
