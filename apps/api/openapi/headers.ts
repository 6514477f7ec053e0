/** What an answer's headers say, under the names that operations and problems refer to. */
export const RESPONSE_HEADERS = {
  'X-Request-Id': {
    required: true,
    description: 'Names the request in logs, and in problems as `request_id`.',
    schema: { type: 'string', pattern: '^req_[0-9a-f]{32}$' },
    example: 'req_0f8fad5bd9cb469fa16570867728950e',
  },
  'Cache-Control': {
    required: true,
    description: 'Nobody on its way keeps an answer.',
    schema: { type: 'string', const: 'no-store' },
    example: 'no-store',
  },
  'X-Content-Type-Options': {
    required: true,
    description: 'It is of the type that it says.',
    schema: { type: 'string', const: 'nosniff' },
    example: 'nosniff',
  },
  Location: {
    required: true,
    description: 'The path of the new resource.',
    schema: { type: 'string', pattern: '^/' },
    example: '/v1/inboxes/inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
  },
  Link: {
    required: false,
    description:
      'The next page (RFC 8288), while there is more. A page may be short: only no `Link` ends a list.',
    schema: { type: 'string', pattern: '^</v1/[^<>]+>; rel="next"$' },
    example: '</v1/inboxes?limit=1&cursor=aW5iXzAxa…>; rel="next"',
  },
  'Mayfly-Cursor': {
    required: true,
    description: 'A position in the inbox. Sent as `cursor`, it returns exactly what came after it.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,200}$' },
    example: 'AAAAAAAF_________________1hQTCg',
  },
  'Retry-After': {
    required: true,
    description: 'Whole seconds after which to come again.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
  'WWW-Authenticate': {
    required: true,
    description: 'What the key must have (RFC 6750, section 3).',
    schema: { type: 'string', pattern: '^Bearer( |$)' },
    example: 'Bearer error="invalid_token"',
  },
  Allow: {
    required: true,
    description: 'The methods that the path supports.',
    schema: { type: 'string', pattern: '^[A-Z]+(, [A-Z]+)*$' },
    example: 'GET, HEAD, POST',
  },
  'RateLimit-Policy': {
    required: false,
    description:
      'What the key may ask for: a sustained quota `q` in each `w` seconds, and a burst beyond it.',
    schema: { type: 'string', pattern: '^"sustained";q=\\d+;w=\\d+, "burst";q=\\d+;w=\\d+$' },
    example: '"sustained";q=100;w=60, "burst";q=50;w=600',
  },
  RateLimit: {
    required: false,
    description: 'The policy that the next request draws on: `r` are left, and it refills in `t` seconds.',
    schema: { type: 'string', pattern: '^"(sustained|burst)";r=\\d+;t=\\d+$' },
    example: '"sustained";r=57;t=12',
  },
  'X-RateLimit-Limit': {
    required: false,
    description: "The quota of `RateLimit`'s policy.",
    schema: { type: 'integer', minimum: 0 },
    example: 100,
  },
  'X-RateLimit-Remaining': {
    required: false,
    description: 'What is left of it.',
    schema: { type: 'integer', minimum: 0 },
    example: 57,
  },
  'X-RateLimit-Reset': {
    required: false,
    description: 'When it refills, in Unix seconds.',
    schema: { type: 'integer', minimum: 0 },
    example: 1795253412,
  },
  'Idempotent-Replayed': {
    required: false,
    description: 'The answer is that of the first request with this `Idempotency-Key`.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Content-Disposition': {
    required: true,
    description: 'The name to save it under. It is never shown by a browser.',
    schema: { type: 'string', pattern: '^attachment' },
    example: 'attachment; filename="a.pdf"',
  },
} as const satisfies Record<string, HeaderForm & { required: boolean }>

/** What a request may say in its headers. */
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
} as const satisfies Record<string, HeaderForm>

/** On every answer. */
export const COMMON_HEADERS = [
  'X-Request-Id',
  'Cache-Control',
  'X-Content-Type-Options',
] as const satisfies (keyof typeof RESPONSE_HEADERS)[]

/** On every answer to a valid key, but for the time in which requests can't be counted. */
export const RATE_LIMIT_HEADERS = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
] as const satisfies (keyof typeof RESPONSE_HEADERS)[]

interface HeaderForm {
  description: string
  schema: object
  example: string | number
}

export type ResponseHeader = keyof typeof RESPONSE_HEADERS
export type RequestHeader = keyof typeof REQUEST_HEADERS
