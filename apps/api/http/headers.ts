import { Res } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The reply, for its headers, as an argument of a handler. Nest sends what the handler returns. */
export const Reply = () => Res({ passthrough: true })

/** Headers of every answer: no cache stores it, and browsers don't guess another type than its `Content-Type`. */
export const SAFE_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** Additional headers of pages: they load and run nothing, are shown in no frame, and send no `Referer`. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
} as const

/** Sets the headers that the handler has not set. */
export function setSafeHeaders(reply: FastifyReply): void {
  const isPage = /^text\/html\b/.test(String(reply.getHeader('content-type') ?? ''))
  const headers = isPage ? { ...SAFE_HEADERS, ...PAGE_HEADERS } : SAFE_HEADERS
  for (const [name, value] of Object.entries(headers))
    if (!reply.hasHeader(name)) void reply.header(name, value)
}

/** Sets `Location` to a resource of a collection (RFC 9110, section 10.2.2). Returns the resource. */
export function withLocation<Resource extends { id: string }>(
  reply: FastifyReply,
  collection: string,
  resource: Resource,
): Resource {
  void reply.header('location', `${collection}/${resource.id}`)
  return resource
}

const COUNT = { type: 'integer', minimum: 0 }

/** The headers of answers, as the OpenAPI document describes them. */
export const RESPONSE_HEADERS = {
  'X-Request-Id': always(
    'The id of the request, in logs and as `request_id` in problems.',
    text('^req_[0-9a-f]{32}$'),
    'req_0f8fad5bd9cb469fa16570867728950e',
  ),
  'Cache-Control': always('Caches must not store the answer.', ...constant(SAFE_HEADERS['cache-control'])),
  'X-Content-Type-Options': always(
    'Browsers must not guess another type than the `Content-Type`.',
    ...constant(SAFE_HEADERS['x-content-type-options']),
  ),
  Location: always('The path of the new resource.', text('^/'), '/v1/inboxes/inb_01jd6b8w0mf2ja3yz5c7e9g1hk'),
  Link: sometimes(
    'The next page (RFC 8288), unless this is the last one. A page can have fewer items than `limit` and still not be the last.',
    text('^</v1/[^<>]+>; rel="next"$'),
    '</v1/inboxes?limit=1&cursor=aW5iXzAxa…>; rel="next"',
  ),
  'Mayfly-Cursor': always(
    'A position in the inbox. Send it as `cursor` to read everything after it.',
    text('^[A-Za-z0-9_-]{1,200}$'),
    'AAAAAAAF_________________1hQTCg',
  ),
  ETag: always(
    'The version of the document (RFC 9110, section 8.8.3).',
    text('^"[A-Za-z0-9_-]+"$'),
    '"Zm9vYmFyYmF6cXV4cXV1eA-br"',
  ),
  'Mayfly-As-Of': sometimes(
    'With `as_of`: the number of leaves of the audit log from which the answer follows.',
    COUNT,
    1042,
  ),
  'Retry-After': always('Seconds to wait before the next request.', COUNT, 1),
  'WWW-Authenticate': always(
    'Why the key was refused, and the scopes of which it needs one (RFC 6750, section 3).',
    text('^Bearer( |$)'),
    'Bearer error="invalid_token"',
  ),
  Allow: always('The methods that the path supports.', text('^[A-Z]+(, [A-Z]+)*$'), 'GET, HEAD, POST'),
  'RateLimit-Policy': sometimes(
    'The rate limits of the key: a sustained quota of `q` requests in each `w` seconds, and a burst in addition.',
    text('^"sustained";q=\\d+;w=\\d+, "burst";q=\\d+;w=\\d+$'),
    '"sustained";q=100;w=60, "burst";q=50;w=600',
  ),
  RateLimit: sometimes(
    'The policy that the next request counts against: `r` requests remain, and the quota refills in `t` seconds.',
    text('^"(sustained|burst)";r=\\d+;t=\\d+$'),
    '"sustained";r=57;t=12',
  ),
  'X-RateLimit-Limit': sometimes('The quota of the policy in `RateLimit`.', COUNT, 100),
  'X-RateLimit-Remaining': sometimes('The remaining requests of that quota.', COUNT, 57),
  'X-RateLimit-Reset': sometimes('When that quota refills, in Unix seconds.', COUNT, 1795253412),
  'Idempotent-Replayed': sometimes(
    'The answer is the stored one to the first request with this `Idempotency-Key`.',
    ...constant('true'),
  ),
  'Content-Disposition': always(
    'The file name. Browsers save the file and never show it.',
    text('^attachment'),
    'attachment; filename="a.pdf"',
  ),
}

export const COMMON_HEADERS = [
  'X-Request-Id',
  'Cache-Control',
  'X-Content-Type-Options',
] as const satisfies ResponseHeader[]

/** Headers of every answer to a valid key, unless requests can't be counted. */
export const RATE_LIMIT_HEADERS = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
] as const satisfies ResponseHeader[]

/** The headers of requests, as the OpenAPI document describes them. */
export const REQUEST_HEADERS = {
  'Idempotency-Key': {
    description:
      'A unique value, so that a repeat of the request within 24 hours gets the same answer: visible ASCII, with or without quotes.',
    schema: {
      type: 'string',
      maxLength: 257,
      pattern: '^("([ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"|[!#-~][!-~]{0,254})$',
    },
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  },
  'Last-Event-ID': {
    description: 'The `id` of the last event that was received. The stream continues after it.',
    schema: { type: 'string' },
    example: 'AAAAAAAF_________________1hQTCg',
  },
  'Mayfly-Inbox-Password': {
    description: 'The `password` from the answer to the creation of a protected inbox.',
    schema: { type: 'string' },
    example: '6pq1v8d0c4m7t2h9k3s5b8n1g0',
  },
}

export type ResponseHeader = keyof typeof RESPONSE_HEADERS
export type RequestHeader = keyof typeof REQUEST_HEADERS

/** A header that is always present if an answer declares it. */
function always(description: string, schema: object, example: string | number) {
  return { required: true, description, schema, example }
}

function sometimes(description: string, schema: object, example: string | number) {
  return { required: false, description, schema, example }
}

function text(pattern: string) {
  return { type: 'string', pattern }
}

/** The schema and example of a header that always has the same value. */
function constant(value: string) {
  return [{ type: 'string', const: value }, value] as const
}

/*
 * CORS: which pages of other origins may use the API in a browser (Fetch, section 3.3, https://fetch.spec.whatwg.org).
 * Requests have their key in a header, never in a cookie. So credentials are not allowed, and `*` may allow any origin.
 */

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ALLOWED_HEADERS = listOf([
  'Authorization',
  'Content-Type',
  'Mcp-Protocol-Version',
  'X-Request-Id',
  ...Object.keys(REQUEST_HEADERS),
])
/** Pages can always read `Cache-Control`, and browsers apply `X-Content-Type-Options` themselves. */
const { 'Cache-Control': _cache, 'X-Content-Type-Options': _type, ...EXPOSED } = RESPONSE_HEADERS
const EXPOSED_HEADERS = listOf(['Deprecation', 'Sunset', ...Object.keys(EXPOSED)])
/** Seconds for which a browser may cache the answer to a preflight. */
const MAX_AGE = 600

export class Cors {
  private readonly origins: ReadonlySet<string>

  /** Origins such as `https://app.example`, or `*` for any; null for none. */
  constructor(origins: readonly string[] | null) {
    this.origins = new Set(origins?.map((origin) => origin.toLowerCase()))
  }

  /**
   * Lets a page of an allowed origin read the answer, also if it is an error. Returns whether the origin is allowed.
   */
  allowOrigin({ headers: { origin } }: FastifyRequest, reply: FastifyReply): boolean {
    if (this.origins.size === 0) return false
    const isAny = this.origins.has('*')
    if (!isAny) void reply.header('vary', 'Origin')
    if (origin === undefined || !(isAny || this.origins.has(origin))) return false
    void reply.headers({
      'access-control-allow-origin': isAny ? '*' : origin,
      'access-control-expose-headers': EXPOSED_HEADERS,
    })
    return true
  }

  /** Whether a browser checks if it may send a request. A preflight has no key. */
  isPreflight({ method, headers }: FastifyRequest): boolean {
    return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
  }

  /** The answer is the same for every path. If a path or method does not exist, the request after it is refused. */
  answerPreflight(reply: FastifyReply): FastifyReply {
    const headers = {
      'access-control-allow-methods': METHODS,
      'access-control-allow-headers': ALLOWED_HEADERS,
      'access-control-max-age': String(MAX_AGE),
    }
    return reply.code(204).headers(headers).send()
  }
}

function listOf(names: readonly string[]): string {
  return names.toSorted().join(', ')
}
