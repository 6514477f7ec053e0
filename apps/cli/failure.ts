import { ApiError, UnreachableError, type Problem } from '#clients/typescript/src/errors.js'
import { messageOf } from '#libs/runtime/errors.js'
import { oneLine } from './printing.js'

/** Exit codes, for scripts. */
export const EXIT = {
  ok: 0,
  /** Any other failure. */
  failed: 1,
  /** The command line or the request is invalid. */
  usage: 2,
  /** Not found, ended, or nothing matched in time. */
  notFound: 3,
  /** The key, its scopes or the password were refused. */
  refused: 4,
  /** Unreachable, busy or over a limit: the same command may succeed later. */
  unavailable: 5,
  /** The mail of a load run differs from its manifest, or an audit log from what was signed. */
  differs: 6,
  /** A signal ended a load test. */
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The failure of a command, with a message for its user. */
export class Failure extends Error {
  override readonly name = 'Failure'

  constructor(
    readonly exitCode: ExitCode,
    message: string,
    /** The API's answer, if that is the reason. */
    readonly problem: Problem | null = null,
  ) {
    super(message)
  }
}

/** The embedded engine needs Node.js 24 (node:sqlite). All other commands also run on older versions. */
const ENGINE_NODE_MAJOR = 24

/** Throws Failure if Node.js is too old for a command that opens files of the embedded engine. */
export function requireOwnNode(command: string): void {
  if (Number(process.versions.node.split('.', 1)[0]) >= ENGINE_NODE_MAJOR) return
  throw new Failure(
    EXIT.usage,
    `run \`npx mayfly ${command}\`, which uses the Node.js that was installed with Mayfly`,
  )
}

export function cannotWrite(path: string, error: unknown): Failure {
  return new Failure(EXIT.failed, `${path} can't be written: ${messageOf(error)}`)
}

/** No active inbox of the environment has the address. */
export function noInboxAt(address: string): Failure {
  return new Failure(EXIT.notFound, `no active inbox of this environment has the address ${oneLine(address)}`)
}

/** The failure of a command that any error ended. */
export function failureFrom(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof ApiError) return refusalOf(error.problem)
  const message = messageOf(error)
  if (error instanceof UnreachableError) return new Failure(EXIT.unavailable, message)
  // A proxy answers 502 to 504 if Mayfly is away.
  const [, status = ''] = /^The answer (\d{3}) does not come from Mayfly/.exec(message) ?? []
  return new Failure(exitCodeOf(Number(status)), message)
}

function refusalOf(problem: Problem): Failure {
  const { title, status, code, request_id: requestId, nearest = [] } = problem
  const misses = nearest.map(({ id, subject, received_at: receivedAt, mismatches }) =>
    oneLine(`${id}, ${receivedAt}, ${subject ?? '(no subject)'}: ${mismatches.join(', ')}`),
  )
  const lines = [
    `${title}: ${detailOf(problem)}`,
    ...misses.map((miss) => `  ${miss}`),
    `To fix it: ${fixOf(problem)}`,
    `(${code}, ${status}, request ${requestId})`,
  ]
  // The other 409, a request that is being repeated, may succeed later.
  const exitCode = code === 'address-taken' ? EXIT.failed : exitCodeOf(status)
  return new Failure(exitCode, lines.join('\n'), problem)
}

/** What the API's fix is for the command line, where that differs. */
const FIXES: Readonly<Record<string, string>> = {
  'invalid-request': 'Correct the command; --help lists its options.',
  'invalid-api-key': 'Check that MAYFLY_KEY or --key has the whole key, or issue another one.',
  'missing-scope': 'Use a key with one of the scopes that are named above.',
  'address-taken':
    'Use another address, or delete the inbox that has it: "mayfly inbox list --address" finds it.',
  'inbox-password-required':
    'Give the password that "mayfly inbox create" printed, with --password or MAYFLY_INBOX_PASSWORD.',
  'inbox-password-invalid': 'Give the password that "mayfly inbox create" printed, unchanged.',
}

/** The options whose names differ from those of the API. */
const OPTIONS: Readonly<Record<string, string>> = { has_code: '--code', has_link: '--link' }

/** The API's detail, with options instead of parameters and properties. */
function detailOf({ detail, errors = [] }: Problem): string {
  const texts = errors.map(({ detail: text, parameter, pointer = '' }) => {
    const name = parameter ?? pointer.split('/')[1] ?? ''
    const option = OPTIONS[name] ?? `--${name.replaceAll('_', '-')}`
    return text.startsWith(`${name} `) ? option + text.slice(name.length) : text
  })
  const text = texts.length === 0 ? detail : texts.join('; ')
  return text
    .replace(', and the request has no header Mayfly-Inbox-Password', '')
    .replaceAll('`cursor`', '--cursor')
}

/** The API's fix, in the words of the command line. */
function fixOf({ code, fix, nearest = [], cursor }: Problem): string {
  if (cursor === undefined) {
    return FIXES[code] ?? fix.replaceAll(/after the time in `Retry-After`/g, 'in a few seconds')
  }
  const why = nearest.length === 0 ? '' : ', and why the messages above did not match'
  return `Check that the mail was sent to this inbox${why}. To wait for later mail only, add --cursor ${oneLine(cursor)}`
}

function exitCodeOf(status: number): ExitCode {
  if ([400, 413].includes(status)) return EXIT.usage
  if ([401, 403].includes(status)) return EXIT.refused
  if ([404, 410].includes(status)) return EXIT.notFound
  if ([409, 429, 502, 503, 504].includes(status)) return EXIT.unavailable
  return EXIT.failed
}
