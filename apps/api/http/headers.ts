import type { FastifyReply, FastifyRequest } from 'fastify'

/** On every answer: no cache keeps it, and browsers do not guess another type than its `Content-Type`. */
export const SAFE_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const

/** On pages too: they load and run nothing, are shown in no frame, and send no `Referer` to other pages. */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
} as const

/** Sets those that the handler has not set. */
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
    'Names the request in logs, and in problems as `request_id`.',
    text('^req_[0-9a-f]{32}$'),
    'req_0f8fad5bd9cb469fa16570867728950e',
  ),
  'Cache-Control': always('Nobody on its way keeps an answer.', ...constant(SAFE_HEADERS['cache-control'])),
  'X-Content-Type-Options': always(
    'It is of the type that it says.',
    ...constant(SAFE_HEADERS['x-content-type-options']),
  ),
  Location: always('The path of the new resource.', text('^/'), '/v1/inboxes/inb_01jd6b8w0mf2ja3yz5c7e9g1hk'),
  Link: sometimes(
    'The next page (RFC 8288), while there is more. A page may be short: only no `Link` ends a list.',
    text('^</v1/[^<>]+>; rel="next"$'),
    '</v1/inboxes?limit=1&cursor=aW5iXzAxa…>; rel="next"',
  ),
  'Mayfly-Cursor': always(
    'A position in the inbox. Sent as `cursor`, it returns exactly what came after it.',
    text('^[A-Za-z0-9_-]{1,200}$'),
    'AAAAAAAF_________________1hQTCg',
  ),
  'Retry-After': always('Whole seconds after which to come again.', COUNT, 1),
  'WWW-Authenticate': always(
    'What the key must have (RFC 6750, section 3).',
    text('^Bearer( |$)'),
    'Bearer error="invalid_token"',
  ),
  Allow: always('The methods that the path supports.', text('^[A-Z]+(, [A-Z]+)*$'), 'GET, HEAD, POST'),
  'RateLimit-Policy': sometimes(
    'What the key may ask for: a sustained quota `q` in each `w` seconds, and a burst beyond it.',
    text('^"sustained";q=\\d+;w=\\d+, "burst";q=\\d+;w=\\d+$'),
    '"sustained";q=100;w=60, "burst";q=50;w=600',
  ),
  RateLimit: sometimes(
    'The policy that the next request draws on: `r` are left, and it refills in `t` seconds.',
    text('^"(sustained|burst)";r=\\d+;t=\\d+$'),
    '"sustained";r=57;t=12',
  ),
  'X-RateLimit-Limit': sometimes("The quota of `RateLimit`'s policy.", COUNT, 100),
  'X-RateLimit-Remaining': sometimes('What is left of it.', COUNT, 57),
  'X-RateLimit-Reset': sometimes('When it refills, in Unix seconds.', COUNT, 1795253412),
  'Idempotent-Replayed': sometimes(
    'The answer is that of the first request with this `Idempotency-Key`.',
    ...constant('true'),
  ),
  'Content-Disposition': always(
    'The name to save it under. It is never shown by a browser.',
    text('^attachment'),
    'attachment; filename="a.pdf"',
  ),
}

/** On every answer. */
export const COMMON_HEADERS = [
  'X-Request-Id',
  'Cache-Control',
  'X-Content-Type-Options',
] as const satisfies ResponseHeader[]

/** On every answer to a valid key, unless requests can't be counted. */
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
      'Names the request, so that a repeat within 24 hours is given the same answer: visible ASCII, quoted or bare.',
    schema: {
      type: 'string',
      maxLength: 257,
      pattern: '^("([ !#-\\[\\]-~]|\\\\["\\\\]){1,255}"|[!#-~][!-~]{0,254})$',
    },
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  },
  'Last-Event-ID': {
    description: 'The `id` of the last event that came: the stream goes on behind it.',
    schema: { type: 'string' },
    example: 'AAAAAAAF_________________1hQTCg',
  },
  'Mayfly-Inbox-Password': {
    description: 'The `password` that the creation of a protected inbox answered.',
    schema: { type: 'string' },
    example: '6pq1v8d0c4m7t2h9k3s5b8n1g0',
  },
}

export type ResponseHeader = keyof typeof RESPONSE_HEADERS
export type RequestHeader = keyof typeof REQUEST_HEADERS

/** A header that is on every answer for which the document names it. */
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
 * Which pages of other origins a browser lets use the API (Fetch, section 3.3, https://fetch.spec.whatwg.org). Requests
 * carry their key in a header, never in a cookie, so credentials are not allowed and any origin may be named by `*`.
 */

const METHODS = 'GET, HEAD, POST, PATCH, DELETE'
const ALLOWED_HEADERS = listOf([
  'Authorization',
  'Content-Type',
  'X-Request-Id',
  ...Object.keys(REQUEST_HEADERS),
])
/** Browsers always show `Cache-Control`, and apply `X-Content-Type-Options` themselves. */
const { 'Cache-Control': _cache, 'X-Content-Type-Options': _type, ...SHOWN } = RESPONSE_HEADERS
const EXPOSED_HEADERS = listOf(['Deprecation', 'Sunset', ...Object.keys(SHOWN)])
/** Seconds for which a browser need not ask again. */
const MAX_AGE = 600

export class Cors {
  private readonly origins: ReadonlySet<string>

  /** Origins such as `https://app.example`, or `*` for any; null for none. */
  constructor(origins: readonly string[] | null) {
    this.origins = new Set(origins?.map((origin) => origin.toLowerCase()))
  }

  /** Lets a page of an allowed origin read the answer, errors too. Returns whether the origin is allowed. */
  mark({ headers: { origin } }: FastifyRequest, reply: FastifyReply): boolean {
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

  /** Whether a browser asks if it may send a request: it does so without a key. */
  isPreflight({ method, headers }: FastifyRequest): boolean {
    return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
  }

  /** The same for every path: the request itself is refused if its path or method does not exist. */
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
