import { RequestMethod, type Type } from '@nestjs/common'
import {
  HTTP_CODE_METADATA,
  METHOD_METADATA,
  PARAMTYPES_METADATA,
  PATH_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js'
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js'
import { MetadataScanner, Reflector } from '@nestjs/core'
import { ENVIRONMENT } from '#libs/domain/account/access.js'
import { QUOTAS } from '#libs/domain/account/quota.js'
import { idPattern } from '#libs/domain/ids/typeid.js'
import type { TokenAccess } from '#libs/domain/inbox/token.js'
import { acceptsInboxTokens, scopesOf, type Handler } from '../access/principal.js'
import { COMMON_HEADERS, RATE_LIMIT_HEADERS, REQUEST_HEADERS, type RequestHeader } from '../http/headers.js'
import { mediaTypesOf, NDJSON } from '../http/media-types.js'
import { routeTemplate } from '../http/method-table.js'
import { PROBLEM_CODES, type ProblemCode } from '../http/problems.js'
import { acceptsMail } from '../http/request-bodies.js'
import { Describe, type Description, Tag } from './describe.js'
import { queryParameters, requestBody } from './dto-schema.js'
import { headerRefs, type Method, type Operation, type Parameter, type SchemaJson } from './openapi-json.js'
import { groupByStatus, type ProblemGroup } from './problem-responses.js'

/** A method and a path that call a handler. */
interface Route {
  method: Method
  path: string
  operation: Operation
  problems: ProblemGroup[]
}

/** The routes of controllers, from the metadata of Nest's decorators. Throws if a description is missing. */
export function routesOf(controllers: readonly Type[]): Route[] {
  const scanner = new MetadataScanner()
  return controllers.flatMap((controller) => {
    const prototype = controller.prototype as Record<string, Handler>
    return scanner.getAllMethodNames(prototype).flatMap((name) => {
      const handler = prototype[name]
      if (handler === undefined || !Reflect.hasMetadata(METHOD_METADATA, handler)) return []
      const bases = [Reflect.getMetadata(PATH_METADATA, controller) as string | string[]].flat()
      const tail = Reflect.getMetadata(PATH_METADATA, handler) as string
      return bases.map((base) => routeOf(controller, name, handler, `${base}/${tail}`))
    })
  })
}

/** Another path for everything under /v1/inboxes. */
const ALIAS = '/v1/emails'

function routeOf(controller: Type, name: string, handler: Handler, registered: string): Route {
  const reflector = new Reflector()
  const about = reflector.get<Description | undefined>(Describe.KEY, handler)
  if (about === undefined) throw new Error(`${controller.name}.${name} has no description`)
  const tag = reflector.get<string | undefined>(Tag.KEY, controller)
  if (tag === undefined) throw new Error(`${controller.name} has no tag`)
  const requestMethod = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod
  const method = RequestMethod[requestMethod].toLowerCase() as Method
  const path = routeTemplate(`/${registered.split('/').filter(Boolean).join('/')}`)
  const isAlias = path.startsWith(ALIAS)
  const scopes = scopesOf(reflector, [handler, controller])
  if (scopes === null && path.startsWith('/v1/'))
    throw new Error(`${controller.name}.${name} requires no scope`)
  const access: TokenAccess = scopes?.includes('read') === true ? 'read' : 'owner'
  const [mediaType = null] = mediaTypesOf(reflector, handler)
  const status = Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined
  const query = argumentClass(controller, name, RouteParamtypes.QUERY)
  const body = argumentClass(controller, name, RouteParamtypes.BODY)
  const { summary, description, bodyLine, answer, isWithoutPassword = false } = about
  // A webhook may be that of an inbox.
  const needsPassword = /:(inboxId|webhookId)/.test(registered) && !isWithoutPassword
  const isRepeatable = method === 'post' && scopes !== null
  const requestHeaders: RequestHeader[] = [
    ...(needsPassword ? (['Mayfly-Inbox-Password'] as const) : []),
    ...(about.requestHeaders ?? []),
    ...(isRepeatable ? (['Idempotency-Key'] as const) : []),
  ]
  const responseHeaders = [
    ...COMMON_HEADERS,
    ...(answer.headers ?? []),
    ...(isRepeatable ? ['Idempotent-Replayed'] : []),
    ...(scopes === null ? [] : RATE_LIMIT_HEADERS),
  ]
  const problems = groupByStatus([
    ...PROBLEMS_OF.anyRequest,
    ...(mediaType === null ? [] : PROBLEMS_OF.mediaType),
    ...(path.includes('{') ? PROBLEMS_OF.pathParameter : []),
    ...(scopes === null ? [] : PROBLEMS_OF.key),
    ...(needsPassword ? PROBLEMS_OF.password : []),
    ...(isRepeatable ? PROBLEMS_OF.idempotencyKey : []),
    ...(method === 'get' ? [] : PROBLEMS_OF.body),
    ...(about.problems ?? []),
  ])
  const operation: Operation = {
    operationId: isAlias ? name.replace('Inboxes', 'Emails').replace('Inbox', 'Email') : name,
    ...(isAlias ? { 'x-alias-of': name } : {}),
    tags: [isAlias ? 'Emails' : tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: [
      ...(scopes ?? []).map((scope) => ({ apiKey: [scope] })),
      ...(acceptsInboxTokens(reflector, handler) ? [{ inboxToken: [access] }] : []),
    ],
    parameters: [
      ...pathParameters(registered),
      ...(query === null ? [] : queryParameters(query)),
      ...requestHeaders.map((name) => ({ name, in: 'header' as const, ...REQUEST_HEADERS[name] })),
    ],
    ...(body === null ? {} : requestBody(body, acceptsMail(reflector, handler))),
    ...(bodyLine === undefined
      ? {}
      : { requestBody: { required: false, content: { [NDJSON]: { schema: bodyLine } } } }),
    responses: {
      [status ?? (method === 'post' ? 201 : 200)]: {
        description: answer.description,
        headers: headerRefs(responseHeaders),
        content: {
          [mediaType ?? '*/*']: { schema: answer.schema },
          ...(answer.line === undefined ? {} : { [NDJSON]: { schema: answer.line } }),
        },
      },
      ...Object.fromEntries(
        problems.map(({ status, name }) => [status, { $ref: `#/components/responses/${name}` }]),
      ),
    },
  }
  return { method, path, operation, problems }
}

/** The class of a handler's query or body; null if it takes none. */
function argumentClass(controller: Type, name: string, kind: RouteParamtypes): Type | null {
  const classes = Reflect.getMetadata(PARAMTYPES_METADATA, controller.prototype as object, name) as Type[]
  const declared = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) as
    Record<string, { index: number }> | undefined
  const [, argument] = Object.entries(declared ?? {}).find(([key]) => key.startsWith(`${kind}:`)) ?? []
  return argument === undefined ? null : (classes[argument.index] ?? null)
}

/** The parameters of paths, by their registered names. */
const PATH_PARAMETERS: Readonly<Record<string, { description: string; schema: SchemaJson }>> = {
  inboxId: idLike('inb_01jd6b8w0mf2ja3yz5c7e9g1hk', 'The id of an inbox.'),
  messageId: idLike('msg_01jd6b90cxf2jb8yqv4t6m2n0p', 'The id of a message in that inbox.'),
  accountId: idLike('acc_01jd6axq2ve9r5t1y3n7m4k8c6', 'The id of an account.'),
  keyId: idLike('key_01jd6aycj4e7p8s9v1w3x5z7b2', 'The id of a key of the account.'),
  memberId: idLike('mem_01jd6b2k8nf3gq6r9t2w5y8z1c', 'The id of a member of the account.'),
  invitationId: idLike('inv_01jd6b2k8nf3gq6r9t2w5y8z1c', 'The id of an invitation of the account.'),
  domainId: idLike('dom_01jd6b2k8nf3gq6r9t2w5y8z1c', 'The id of a domain of the account.'),
  logId: idLike('log_01jd6b2k8nf3gq6r9t2w5y8z1c', 'The id of an audit log.'),
  eventId: idLike('evt_01jd6b90czf2jb8z0w6s8p1q3r', 'The id of an event.'),
  webhookId: idLike('whk_01jd6b2k8nf3gq6r9t2w5y8z1c', 'The id of a webhook.'),
  deliveryId: idLike('dlv_01jd6b90czf2jb8z0w6s8p1q3r', 'The id of a delivery of the webhook.'),
  replayId: idLike('rpl_01jd6b9t3mf2ka7xw5v1n8q4se', 'The id of a replay of the webhook.'),
  tokenId: idLike('tok_01jd6bd2k6e8vrz0n4x7c1m9ps', 'The id of a token of the inbox.'),
  name: {
    description: 'The name of an environment of the account.',
    schema: { type: 'string', pattern: ENVIRONMENT.source, examples: ['development'] },
  },
  quota: { description: 'The name of a quota.', schema: { type: 'string', enum: [...QUOTAS] } },
  label: {
    description: 'A label `<name>:<value>`, URL-encoded.',
    schema: { type: 'string', pattern: '^[^:]{1,64}:', examples: ['run:42'] },
  },
  index: { description: "The attachment's `index`.", schema: { type: 'integer', minimum: 0 } },
  code: { description: "A problem's `code`.", schema: { type: 'string', enum: PROBLEM_CODES } },
}

function idLike(example: string, description: string) {
  return {
    description,
    schema: { type: 'string', pattern: idPattern(example.slice(0, 3)), examples: [example] },
  }
}

/** Throws if a parameter has no description. */
function pathParameters(registered: string): Parameter[] {
  const names = [...routeTemplate(registered).matchAll(/\{(\w+)\}/g)]
  return [...registered.matchAll(/:(\w+)/g)].map(([, name = ''], index) => {
    const described = PATH_PARAMETERS[name]
    if (described === undefined) throw new Error(`the path parameter ${name} has no description`)
    return { name: names[index]?.[1] ?? name, in: 'path', required: true, ...described }
  })
}

/** The problems that every operation of a kind may answer. */
const PROBLEMS_OF = {
  anyRequest: ['invalid-request', 'internal-error', 'shutting-down'],
  mediaType: ['not-acceptable'],
  pathParameter: ['not-found'],
  key: [
    'missing-api-key',
    'invalid-api-key',
    'revoked-api-key',
    'plan-lacks-api-access',
    'account-suspended',
    'missing-scope',
    'catching-up',
    'log-unavailable',
    'read-model-unavailable',
    'rate-limited',
  ],
  password: ['inbox-password-required', 'inbox-password-invalid', 'too-many-password-attempts'],
  idempotencyKey: ['idempotency-key-in-use', 'idempotency-key-reused'],
  body: ['malformed-json', 'body-too-large', 'unsupported-media-type', 'busy'],
} as const satisfies Record<string, readonly ProblemCode[]>
