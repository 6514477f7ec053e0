import type { ResponseHeader } from '../openapi/headers.js'

/**
 * Every error that the API answers with: what it is called, its status, what to do about it, and the headers that
 * come with it. Answers, the OpenAPI document, the pages about problems and the guide's table are made from it.
 */
export const PROBLEMS = {
  'invalid-request': {
    status: 400,
    title: 'The request is not right',
    fix: 'Mend what `detail` says, and `errors` in its parts, and send the request again.',
  },
  'malformed-json': {
    status: 400,
    title: 'The body is not JSON',
    fix: 'Send a JSON object as the body, or no body.',
  },
  'missing-api-key': {
    status: 401,
    title: 'An API key is needed',
    fix: 'Send the header `Authorization: Bearer <key>`.',
    headers: ['WWW-Authenticate'],
  },
  'invalid-api-key': {
    status: 401,
    title: 'The API key is not known',
    fix: 'Check the key for slips in copying, or issue another one.',
    headers: ['WWW-Authenticate'],
  },
  'revoked-api-key': {
    status: 401,
    title: 'The API key has been revoked, or has another secret by now',
    fix: 'Use the secret that the last rotation gave, or another key.',
    headers: ['WWW-Authenticate'],
  },
  'plan-lacks-api-access': {
    status: 403,
    title: 'The plan has no API access',
    fix: 'Move the account to a plan with API access.',
  },
  'missing-scope': {
    status: 403,
    title: 'The key lacks a scope',
    fix: 'Use a key that has one of the scopes named in `detail`.',
    headers: ['WWW-Authenticate'],
  },
  'inbox-password-required': {
    status: 403,
    title: 'The inbox has a password',
    fix: "Send the header `Mayfly-Inbox-Password` with the `password` that the inbox's creation answered.",
  },
  'inbox-password-invalid': {
    status: 403,
    title: "The password is not the inbox's",
    fix: "Send the `password` that the inbox's creation answered, as it stands there.",
  },
  'not-found': {
    status: 404,
    title: 'There is no such thing',
    fix: 'Check the path and the id, and that the key belongs to its account and environment.',
  },
  'no-matching-message': {
    status: 404,
    title: 'No message matched in time',
    fix: 'Check that the mail was sent to this inbox, see in `nearest` why other mail did not match, and wait again from `cursor`.',
    headers: ['Mayfly-Cursor'],
  },
  'method-not-allowed': {
    status: 405,
    title: 'The path does not take this method',
    fix: 'Use one of the methods that the header `Allow` names.',
    headers: ['Allow'],
  },
  'not-acceptable': {
    status: 406,
    title: 'The answer has no form that the client accepts',
    fix: 'Accept the media type named in `detail`.',
  },
  'idempotency-key-in-use': {
    status: 409,
    title: 'A request with this Idempotency-Key is under way',
    fix: 'Send the same request again after the time that `Retry-After` names: it is given the answer of the first.',
    headers: ['Retry-After'],
  },
  'inbox-deleted': {
    status: 410,
    title: 'The inbox has been deleted',
    fix: 'Create another inbox: its mail is gone for good.',
  },
  'inbox-expired': {
    status: 410,
    title: 'The inbox has expired',
    fix: 'Create another inbox, with a longer `duration` where needed: its mail is gone for good.',
  },
  'message-deleted': {
    status: 410,
    title: 'The message has been deleted',
    fix: 'Have it sent again: its content is gone for good.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    fix: 'Send a body within the limit named in `detail`.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body has a media type that is not taken',
    fix: 'Send JSON with `Content-Type: application/json`.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'The Idempotency-Key stands for another request',
    fix: 'Take another Idempotency-Key for another request, and for the same one send what was sent first.',
  },
  'rate-limited': {
    status: 429,
    title: 'The key has used up its requests',
    fix: 'Try again after the time that `Retry-After` names, or move the account to a plan with more requests.',
    headers: ['Retry-After'],
  },
  'too-many-password-attempts': {
    status: 429,
    title: 'Too many wrong passwords were given for the inbox',
    fix: 'Wait as long as `Retry-After` says, or send the right password with a key that has given no wrong one.',
    headers: ['Retry-After'],
  },
  'internal-error': {
    status: 500,
    title: 'Something went wrong here',
    fix: 'Try again; if it stays, report it with the `request_id`.',
  },
  'catching-up': {
    status: 503,
    title: 'The views are catching up with the log',
    fix: 'Try again after the time that `Retry-After` names.',
    headers: ['Retry-After'],
  },
  'log-unavailable': {
    status: 503,
    title: 'The event log is out of reach',
    fix: 'Try again after the time that `Retry-After` names.',
    headers: ['Retry-After'],
  },
  'read-model-unavailable': {
    status: 503,
    title: 'The views are out of reach',
    fix: 'Try again after the time that `Retry-After` names.',
    headers: ['Retry-After'],
  },
  busy: {
    status: 503,
    title: 'Too much large work is under way',
    fix: 'Try again after the time that `Retry-After` names, with fewer large requests at once, or read the answers faster.',
    headers: ['Retry-After'],
  },
  'too-many-streams': {
    status: 503,
    title: 'There are as many streams open as there may be',
    fix: 'Try again after the time that `Retry-After` names, or run more instances.',
    headers: ['Retry-After'],
  },
  'too-many-waits': {
    status: 503,
    title: 'There are as many waits open as there may be',
    fix: 'Try again after the time that `Retry-After` names, or run more instances.',
    headers: ['Retry-After'],
  },
  'shutting-down': {
    status: 503,
    title: 'This instance is shutting down',
    fix: 'Try again after the time that `Retry-After` names.',
    headers: ['Retry-After'],
  },
} as const satisfies Record<string, ProblemForm>

export interface ProblemForm {
  status: number
  title: string
  fix: string
  headers?: readonly ResponseHeader[]
}

export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_CODES = Object.keys(PROBLEMS) as ProblemCode[]

/** Where a fault of a request stands: in the body (RFC 6901), the query, the path or a header. */
export type Place = { pointer: string } | { parameter: string } | { header: string }

export type Fault = { detail: string } & Place

export interface ProblemOptions {
  detail: string
  errors?: readonly Fault[]
  headers?: Readonly<Record<string, string>>
  /** Further members of the problem, in snake_case. */
  members?: Readonly<Record<string, unknown>>
}

/** An answer that is an error: thrown anywhere in the API, sent as RFC 9457 problem details. */
export class Problem extends Error {
  override readonly name = 'Problem'

  constructor(
    readonly code: ProblemCode,
    readonly options: ProblemOptions,
  ) {
    super(options.detail)
  }

  get status(): number {
    return PROBLEMS[this.code].status
  }
}

/** Seconds after which a client may come again: views catch up and logs come back in about that. */
const RETRY_AFTER = { 'retry-after': '1' }

export function unavailable(
  code:
    | 'busy'
    | 'catching-up'
    | 'log-unavailable'
    | 'read-model-unavailable'
    | 'too-many-streams'
    | 'too-many-waits'
    | 'shutting-down',
  detail: string,
): Problem {
  return new Problem(code, { detail, headers: RETRY_AFTER })
}

export function notFound(detail: string): Problem {
  return new Problem('not-found', { detail })
}

export function invalid(...errors: [Fault, ...Fault[]]): Problem {
  return new Problem('invalid-request', { detail: errors.map(({ detail }) => detail).join('; '), errors })
}
