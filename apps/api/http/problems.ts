import type { Account } from '#libs/domain/account/account.js'
import { kindOf, resetOf } from '#libs/domain/account/quota.js'
import { UnavailableError } from '#libs/runtime/errors.js'
import type { ExceededQuota } from '#libs/ports/read-model/account-quotas.js'
import type { ResponseHeader } from './headers.js'

const LATER_OR_ELSEWHERE = 'Try again after the time in `Retry-After`, or run more instances.'

/**
 * Every error of the API: its status, its title, what the client can do about it, and the headers sent with it.
 * Answers, the OpenAPI document, the pages about problems and the table in docs/api.md are generated from it.
 */
export const PROBLEMS = {
  'invalid-request': {
    status: 400,
    title: 'Invalid request',
    fix: 'Correct what `detail` and `errors` name, and send the request again.',
  },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    fix: 'Send a JSON object as the body, or no body.',
  },
  'missing-api-key': {
    status: 401,
    title: 'API key required',
    fix: 'Send the header `Authorization: Bearer <key>`.',
    headers: ['WWW-Authenticate'],
  },
  'invalid-api-key': {
    status: 401,
    title: 'Invalid API key',
    fix: 'Check that the key was copied whole, or issue another one.',
    headers: ['WWW-Authenticate'],
  },
  'revoked-api-key': {
    status: 401,
    title: 'API key revoked, rotated or expired',
    fix: 'Use the secret of the last rotation, or another key.',
    headers: ['WWW-Authenticate'],
  },
  'sign-in-failed': {
    status: 401,
    title: 'Sign-in failed',
    fix: 'Open a new link, which `mayfly console` prints, or use an API key with the scope `admin`.',
  },
  'not-signed-in': {
    status: 401,
    title: 'Not signed in',
    fix: 'Sign in to the console again.',
  },
  'plan-lacks-api-access': {
    status: 403,
    title: 'Plan without API access',
    fix: 'Move the account to a plan with API access.',
  },
  'account-suspended': {
    status: 403,
    title: 'Account suspended',
    fix: 'Ask the operator of this server.',
  },
  'missing-scope': {
    status: 403,
    title: 'Missing scope',
    fix: 'Use a key with one of the scopes that `detail` names.',
    headers: ['WWW-Authenticate'],
  },
  'not-invited': {
    status: 403,
    title: 'Not a member of any account',
    fix: 'Ask an owner to invite the address that the identity provider knows and has verified.',
  },
  'no-role': {
    status: 403,
    title: 'No role yet',
    fix: 'Ask an owner of the account for a role.',
  },
  'sign-in-with-provider': {
    status: 403,
    title: 'Sign-in with an identity provider required',
    fix: 'Sign in with one of the identity providers that the page shows.',
  },
  'link-check-disabled': {
    status: 403,
    title: 'Checks of links are disabled',
    fix: 'Request the addresses in `links` of the message yourself, or run Mayfly without public inboxes.',
  },
  'untrusted-origin': {
    status: 403,
    title: 'Untrusted origin',
    fix: 'Open the page at the address in `MAYFLY_PUBLIC_URL`, or at `localhost` if that is not set.',
  },
  'inbox-password-required': {
    status: 403,
    title: 'Inbox password required',
    fix: 'Send the `password` from the answer to the creation of the inbox in the header `Mayfly-Inbox-Password`.',
  },
  'inbox-password-invalid': {
    status: 403,
    title: 'Wrong inbox password',
    fix: 'Send the `password` from the answer to the creation of the inbox, unchanged.',
  },
  'not-found': {
    status: 404,
    title: 'Resource not found',
    fix: 'Check the path and the id, and that the key belongs to the same account and environment.',
  },
  'no-matching-message': {
    status: 404,
    title: 'No message matched in time',
    fix:
      'Check that the mail was sent to this inbox. `nearest` says why other mail did not match; wait again from `cursor`. ' +
      'With `count` there is no `nearest`: `too_few` lists inboxes that lack mail; repeat the same request.',
    headers: ['Mayfly-Cursor'],
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    fix: 'Use one of the methods that the header `Allow` names.',
    headers: ['Allow'],
  },
  'not-acceptable': {
    status: 406,
    title: 'Not acceptable',
    fix: 'Accept the media type that `detail` names.',
  },
  'already-signed-in': {
    status: 409,
    title: 'Already signed in as somebody else',
    fix: 'Keep the session that `detail` names, or replace it if you asked for the link yourself.',
  },
  'idempotency-key-in-use': {
    status: 409,
    title: 'A request with this Idempotency-Key is in progress',
    fix: 'Send the same request again after the time in `Retry-After`. It gets the answer to the first one.',
    headers: ['Retry-After'],
  },
  'address-taken': {
    status: 409,
    title: 'The address or domain is taken',
    fix: 'Use another one, or delete the inbox or the domain that has it: `GET /v1/inboxes?address=` and `GET /v1/domains` find it.',
  },
  'inbox-full': {
    status: 409,
    title: 'The inbox is full',
    fix: 'Delete messages of the inbox, or use another one. The limit is `max_messages` of the account.',
  },
  'not-yet-checkpointed': {
    status: 409,
    title: 'Not in a checkpoint yet',
    fix: 'Try again after the time in `Retry-After`. A log that grows is signed every ten seconds.',
    headers: ['Retry-After'],
  },
  'inbox-deleted': {
    status: 410,
    title: 'The inbox has been deleted',
    fix: 'Create another inbox. Its mail is permanently deleted.',
  },
  'inbox-expired': {
    status: 410,
    title: 'The inbox has expired',
    fix: 'Create another inbox, with a longer `duration` if needed. Its mail is permanently deleted.',
  },
  'history-expired': {
    status: 410,
    title: 'The history is no longer kept',
    fix: 'Export the audit log regularly: `mayfly audit export` keeps records that the event log no longer has.',
  },
  'message-deleted': {
    status: 410,
    title: 'The message has been deleted',
    fix: 'Send the mail again. Its content is permanently deleted.',
  },
  'body-too-large': {
    status: 413,
    title: 'The body is too large',
    fix: 'Send a body within the limit that `detail` names.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    fix: 'Send an uncompressed body of an accepted type, as `detail` says.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'Idempotency-Key reused',
    fix: 'Use another Idempotency-Key for another request. To repeat a request, send it unchanged.',
  },
  'domain-not-verified': {
    status: 422,
    title: 'Not a domain of this environment',
    fix: 'Use a verified domain of the account and environment, or leave out the address to get a generated one.',
  },
  'html-too-complex': {
    status: 422,
    title: 'The HTML of the message is too complex',
    fix: 'Read `text` or `visible_text` of the message, or its source.',
  },
  'rate-limited': {
    status: 429,
    title: 'Rate limit exceeded',
    fix: 'Try again after the time in `Retry-After`, or move the account to a plan with more requests.',
    headers: ['Retry-After'],
  },
  'quota-exceeded': {
    status: 429,
    title: 'Quota used up',
    fix: 'Delete some of what `quota` names, wait until inboxes expire, or until midnight UTC for a daily quota, set a larger quota, or move the account to a plan with larger ones.',
    headers: ['Retry-After'],
  },
  'too-many-password-attempts': {
    status: 429,
    title: 'Too many wrong passwords for the inbox',
    fix: 'Wait for the time in `Retry-After`, or send the right password with a key that has not sent a wrong one.',
    headers: ['Retry-After'],
  },
  'audit-log-contradicted': {
    status: 500,
    title: 'The audit log contradicts a checkpoint',
    fix: 'Find out why the event log was replaced, such as by an older backup, and restore the right one. Report it to the auditors.',
  },
  'internal-error': {
    status: 500,
    title: 'Internal error',
    fix: 'Try again. If it happens again, report it with the `request_id`.',
  },
  'catching-up': unavailableForm('The views are catching up with the log'),
  'log-unavailable': unavailableForm('The event log is unavailable'),
  'read-model-unavailable': unavailableForm('The views are unavailable'),
  'provider-unavailable': unavailableForm('The identity provider is unavailable'),
  busy: unavailableForm(
    'Too many large requests at once',
    'Try again after the time in `Retry-After`, with fewer large requests at once, or read the answers faster.',
  ),
  'too-many-streams': unavailableForm('Too many open streams', LATER_OR_ELSEWHERE),
  'too-many-waits': unavailableForm('Too many open waits', LATER_OR_ELSEWHERE),
  'shutting-down': unavailableForm('This instance is shutting down'),
} as const satisfies Record<string, ProblemForm>

/** A 503: the same request may succeed later. */
function unavailableForm(title: string, fix = 'Try again after the time in `Retry-After`.') {
  return { status: 503, title, fix, headers: ['Retry-After'] } as const
}

export interface ProblemForm {
  status: number
  title: string
  fix: string
  headers?: readonly ResponseHeader[]
}

export type ProblemCode = keyof typeof PROBLEMS

export const PROBLEM_CODES = Object.keys(PROBLEMS) as ProblemCode[]

/** The location of an error in a request: in the body (RFC 6901), the query, the path or a header. */
export type Location = { pointer: string } | { parameter: string } | { header: string }

export type RequestError = { detail: string } & Location

interface ProblemOptions {
  detail: string
  errors?: readonly RequestError[]
  headers?: Readonly<Record<string, string>>
  /** Further members of the problem, in snake_case. */
  members?: Readonly<Record<string, unknown>>
}

/** An error of the API. It can be thrown anywhere, and is sent as problem details (RFC 9457). */
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

  toJson(requestId: string, publicUrl: string): object {
    const { status, title, fix } = PROBLEMS[this.code]
    const { detail, errors, members } = this.options
    const problem = {
      type: `${publicUrl}/problems/${this.code}`,
      title,
      status,
      detail,
      code: this.code,
      fix,
    }
    return { ...problem, request_id: requestId, ...members, ...(errors && { errors }) }
  }
}

/** Whether the same work may succeed later: what it needs is unavailable, or too busy. */
export function isTransient(error: unknown): error is Error {
  return error instanceof UnavailableError || (error instanceof Problem && error.status === 503)
}

export type UnavailableCode = {
  [Code in ProblemCode]: (typeof PROBLEMS)[Code]['status'] extends 503 ? Code : never
}[ProblemCode]

/** A 503. `Retry-After` is the usual time, in seconds, in which views catch up and logs become available again. */
export function unavailable(code: UnavailableCode, detail: string): Problem {
  return new Problem(code, { detail, headers: { 'retry-after': '1' } })
}

export function notFound(detail: string): Problem {
  return new Problem('not-found', { detail })
}

/** The 404 of a kind of resource, such as "inbox", by its id. */
export function noResource(kind: string, id: string): Problem {
  return notFound(`There is no ${kind} ${id.slice(0, 60)}.`)
}

/** The 503 of a change, if other requests have come first each time that it was tried. */
export function beingChanged(kind: string, id: string): Problem {
  return unavailable('busy', `Other requests change the ${kind} ${id} at the same time.`)
}

/** Inboxes expire at any time, but seldom within seconds. */
const QUOTA_RETRY_MS = 60_000

export function quotaExceeded(exceeded: ExceededQuota, now: Date): Problem {
  const { quota, scope, limit, used, wanted } = exceeded
  const { unit } = kindOf(quota)
  const { environment, keyId } = scope
  const account = environment === null ? 'The account' : `The environment ${environment}`
  const owner = keyId === null ? account : `The key ${keyId}`
  const resetsAt = resetOf(quota, now)
  const retryMs = resetsAt === null ? QUOTA_RETRY_MS : resetsAt.getTime() - now.getTime()
  return new Problem('quota-exceeded', {
    detail: `${owner} has ${used} of at most ${limit} ${unit}, and the request adds ${wanted}.`,
    headers: { 'retry-after': String(Math.ceil(retryMs / 1_000)) },
    members: { quota, environment, key_id: keyId, limit, used },
  })
}

export function shuttingDown(detail = 'This instance accepts no more requests.'): Problem {
  return unavailable('shutting-down', detail)
}

/** Throws account-suspended, also for a closed account. */
export function requireNotSuspended({
  id,
  suspendedAt,
  closed,
}: Pick<Account, 'id' | 'suspendedAt' | 'closed'>): void {
  if (suspendedAt === null) return
  const detail =
    closed === null
      ? `The account ${id} has been suspended since ${suspendedAt.toISOString()}.`
      : `The account ${id} was closed at ${closed.at.toISOString()}.`
  throw new Problem('account-suspended', { detail })
}

export function planLacksApiAccess(plan: string): Problem {
  return new Problem('plan-lacks-api-access', { detail: `The plan ${plan} has no API access.` })
}

export function overGrace(maxMs: number): Problem {
  return invalid({ detail: `grace may be at most ${maxMs / 86_400_000}d`, pointer: '/grace' })
}

export function invalid(...errors: [RequestError, ...RequestError[]]): Problem {
  return new Problem('invalid-request', { detail: errors.map(({ detail }) => detail).join('; '), errors })
}
