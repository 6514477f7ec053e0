import type { Schemas } from './options.js'

/** What the API says about a failed request (RFC 9457). */
export type Problem = Schemas['Problem']

/** The kinds of problems that the API reports. Later versions of the server may add some. */
export type ProblemCode = Problem['code']

/** A message that a wait examined, and why it did not match. */
export type NearMiss = Schemas['NearMiss']

/** The base of all errors of this library. */
export class MayflyError extends Error {
  override readonly name: string = 'MayflyError'
}

/** The API refused a request. `code` says why, for programs; the message says why and what to do, for people. */
export class ApiError extends MayflyError {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ProblemCode
  readonly title: string
  readonly detail: string
  readonly fix: string
  /** Identifies the request in the server's log. */
  readonly requestId: string
  /** With the code `invalid-request`: each error in the request. */
  readonly errors: readonly Schemas['Fault'][]
  /** The whole answer, with the properties that only some codes have. */
  readonly problem: Problem

  /** @internal */
  constructor(problem: Problem) {
    const { status, code, title, detail, fix, errors = [] } = problem
    const faults = errors.map(({ parameter, pointer, header, detail: fault }) => {
      return `\n  ${parameter ?? pointer ?? header ?? ''}: ${fault}`
    })
    super(`${detail} [${status} ${code}] ${fix}${faults.length > 1 ? faults.join('') : ''}`)
    this.status = status
    this.code = code
    this.title = title
    this.detail = detail
    this.fix = fix
    this.requestId = problem.request_id
    this.errors = errors
    this.problem = problem
  }
}

/** Mayfly did not answer: the connection failed repeatedly, or no answer came within the time of the call. */
export class UnreachableError extends MayflyError {
  override readonly name = 'UnreachableError'

  /** @internal */
  constructor(
    url: string,
    reason: string,
    /** Whether the time of the call ended. */
    readonly isTimeout: boolean,
    cause?: unknown,
  ) {
    super(`Mayfly is not reachable at ${url}: ${reason}. Start it, or set MAYFLY_URL to its address.`, {
      cause,
    })
  }
}

/** No message matched in time. The message lists what arrived and why it did not match. */
export class WaitTimeoutError extends MayflyError {
  override readonly name = 'WaitTimeoutError'

  /** @internal */
  constructor(
    expected: string,
    /** The messages nearest to a match, at most ten. */
    readonly arrived: readonly NearMiss[],
    /** The number of messages that were examined. */
    readonly examined: number,
    /** The position after all examined messages, for `since`. */
    readonly cursor: string,
  ) {
    const count = `${examined} message${examined === 1 ? '' : 's'} arrived`
    const nearest = examined > arrived.length ? '; the nearest to a match' : ''
    const lines = arrived.map(({ subject, received_at, mismatches }) => {
      return `\n  ${quoted(subject)}, ${received_at}: ${mismatches.join('; ')}`
    })
    super(`${expected}\n${examined === 0 ? 'No message arrived.' : `${count}${nearest}:${lines.join('')}`}`)
  }
}

/** @internal */
export function quoted(subject: string | null): string {
  return subject === null ? '(no subject)' : printable(JSON.stringify(subject))
}

/**
 * A text without the characters that control a terminal: mail comes from anywhere.
 * @internal
 */
export function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** A request that claims to be a webhook does not have a valid signature. */
export class WebhookVerificationError extends MayflyError {
  override readonly name = 'WebhookVerificationError'
}
