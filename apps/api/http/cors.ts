import type { FastifyReply, FastifyRequest } from 'fastify'
import { REQUEST_HEADERS, RESPONSE_HEADERS } from './headers.js'

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

  /** Origins such as `https://app.example`, or `*` for any; none at all where null. */
  constructor(origins: readonly string[] | null) {
    this.origins = new Set(origins?.map((origin) => origin.toLowerCase()))
  }

  /** Lets the page that asks read the answer, errors too, where its origin is allowed; says whether it is. */
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

  /** Whatever the path: what is not there, or not taken there, is said to the request itself. */
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
