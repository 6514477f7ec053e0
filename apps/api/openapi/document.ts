import type { Type } from '@nestjs/common'
import { PROBLEM_CODES, PROBLEMS, type ProblemCode } from '../http/problems.js'
import { TAGS } from './describe.js'
import { bodyOf, propertiesOf } from './dto-schema.js'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS, REQUEST_HEADERS, RESPONSE_HEADERS } from '../http/headers.js'
import { NamedSchemas } from './named-schemas.js'
import type { Document, Operation, Parameter, ResponseJson } from './openapi-json.js'
import { parameterOf } from './path-parameters.js'
import { headerRef, Problem, problemResponse, problemResponseName } from './problem-schemas.js'
import { routesOf, type Route } from './routes.js'
import { describeSent } from './sent-events.js'

/** The second name of all that is under /v1/inboxes. */
const OTHER_FAMILY = '/v1/emails'

/** The OpenAPI document of some controllers. Throws if one of their handlers is not wholly described. */
export function describeApi(controllers: readonly Type[], publicUrl: string): Document {
  const schemas = new NamedSchemas()
  schemas.name(Problem)
  const paths: Document['paths'] = {}
  const responses = new Map<string, ResponseJson>()
  for (const code of PROBLEM_CODES) responses.set(code, problemResponse([code], publicUrl))
  for (const route of routesOf(controllers)) {
    const operation = describeRoute(route, schemas, (codes) => {
      const name = problemResponseName(codes)
      if (!responses.has(name)) responses.set(name, problemResponse(codes, publicUrl))
      return { $ref: `#/components/responses/${name}` }
    })
    paths[route.path] = { ...paths[route.path], [route.method]: operation }
  }
  const webhooks = describeSent(schemas)
  return {
    openapi: '3.1.1',
    info: INFO,
    servers: [{ url: publicUrl }],
    tags: [...Object.entries(TAGS), EMAILS].map(([name, description]) => ({ name, description })),
    paths,
    webhooks,
    components: {
      schemas: schemas.all(),
      responses: Object.fromEntries(responses),
      headers: RESPONSE_HEADERS,
      securitySchemes: { apiKey: API_KEY },
    },
  }
}

const EMAILS = [
  'Emails',
  'Another name for inboxes: each operation does what the one named in its `x-alias-of` does, with links under `/v1/emails`.',
] as const

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

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description:
    '`Authorization: Bearer mf_<environment>_<secret>`. A key sees the inboxes of its environment alone. Scopes: ' +
    '`inboxes`; `read`, the GETs of `inboxes`; `audit`, the history without content; `admin`, the whole account; ' +
    '`operator`, all accounts. An operation takes a key with any one of the scopes that its security names.',
}

function describeRoute(
  route: Route,
  schemas: NamedSchemas,
  refuse: (codes: readonly ProblemCode[]) => { $ref: string },
): Operation {
  const { description, path, scopes } = route
  const isOther = path.startsWith(OTHER_FAMILY)
  return {
    operationId: isOther ? description.id.replace(/Inbox(es)?/, otherName) : description.id,
    ...(isOther ? { 'x-alias-of': description.id } : {}),
    tags: [isOther ? EMAILS[0] : description.tag],
    summary: description.summary,
    ...(description.description === undefined ? {} : { description: description.description }),
    security: (scopes ?? []).map((scope) => ({ apiKey: [scope] })),
    parameters: parametersOf(route),
    ...requestBody(route, schemas),
    responses: {
      [route.status]: successOf(route, schemas),
      ...Object.fromEntries(byStatus(problemsOf(route)).map(([status, codes]) => [status, refuse(codes)])),
    },
  }
}

function otherName(name: string): string {
  return name === 'Inboxes' ? 'Emails' : 'Email'
}

function parametersOf(route: Route): Parameter[] {
  const { path, query, description } = route
  const takes = [...(description.takes ?? []), ...(isRepeatable(route) ? (['Idempotency-Key'] as const) : [])]
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => parameterOf(path, name))
  const inQuery = query === null ? [] : propertiesOf(query)
  return [
    ...inPath,
    ...inQuery.map(({ name, description, isRequired, schema }) => ({
      name,
      in: 'query' as const,
      ...(isRequired ? { required: true } : {}),
      description,
      schema,
    })),
    ...takes.map((name) => ({ name, in: 'header' as const, ...REQUEST_HEADERS[name] })),
  ]
}

function requestBody({ body }: Route, schemas: NamedSchemas): Pick<Operation, 'requestBody'> {
  const described = body === null ? null : bodyOf(body, schemas)
  if (described === null) return {}
  const { isRequired: required, schema } = described
  return { requestBody: { required, content: { 'application/json': { schema } } } }
}

function successOf(route: Route, schemas: NamedSchemas): ResponseJson {
  const { description, produces, scopes } = route
  const { answer } = description
  const limits = scopes === null ? [] : RATE_LIMIT_HEADERS
  const replayed = isRepeatable(route) ? (['Idempotent-Replayed'] as const) : []
  const headers = [...COMMON_HEADERS, ...(answer.headers ?? []), ...replayed, ...limits] as const
  return {
    description: answer.description,
    headers: Object.fromEntries(headers.map((name) => [name, headerRef(name)])),
    content: { [produces ?? '*/*']: { schema: schemas.name(answer.schema) } },
  }
}

/** What an operation may fail with: what all of its kind may, and what it says of itself. */
function problemsOf(route: Route): ProblemCode[] {
  const { method, path, scopes, produces, description } = route
  const codes = new Set<ProblemCode>(['invalid-request', 'internal-error', 'shutting-down'])
  const add = (when: boolean, ...more: ProblemCode[]) => {
    if (when) for (const code of more) codes.add(code)
  }
  add(produces !== null, 'not-acceptable')
  add(path.includes('{'), 'not-found')
  add(
    scopes !== null,
    'missing-api-key',
    'invalid-api-key',
    'revoked-api-key',
    'plan-lacks-api-access',
    'missing-scope',
  )
  add(scopes !== null, 'catching-up', 'log-unavailable', 'read-model-unavailable')
  add(scopes !== null, 'rate-limited')
  add(description.takes?.includes('Mayfly-Inbox-Password') === true, ...PASSWORD_PROBLEMS)
  add(isRepeatable(route), 'idempotency-key-in-use', 'idempotency-key-reused')
  add(method !== 'get', 'malformed-json', 'body-too-large', 'unsupported-media-type', 'busy')
  add(true, ...(description.problems ?? []))
  return PROBLEM_CODES.filter((code) => codes.has(code))
}

/** Whether it takes an Idempotency-Key. */
function isRepeatable({ method, scopes }: Route): boolean {
  return method === 'post' && scopes !== null
}

const PASSWORD_PROBLEMS = [
  'inbox-password-required',
  'inbox-password-invalid',
  'too-many-password-attempts',
] as const satisfies ProblemCode[]

function byStatus(codes: readonly ProblemCode[]): [status: string, codes: ProblemCode[]][] {
  return Object.entries(Object.groupBy(codes, (code) => String(PROBLEMS[code].status))).map(
    ([status, some = []]) => [status, some],
  )
}
