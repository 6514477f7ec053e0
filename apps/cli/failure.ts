import { oneLine } from './printing.js'

/** How the command ends, for scripts to tell. */
export const EXIT = {
  ok: 0,
  /** Anything that none of the others says. */
  failed: 1,
  /** The command line, or what it asks for, is not right. */
  usage: 2,
  /** There is no such thing, or no more, or nothing matched in time. */
  notFound: 3,
  /** The key or the password does not do. */
  refused: 4,
  /** Out of reach, or not just now: the same command may do later. */
  unavailable: 5,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Why a command did not do what it was asked to, in words for whoever ran it. */
export class Failure extends Error {
  override readonly name = 'Failure'

  constructor(
    readonly exitCode: ExitCode,
    message: string,
    /** What the API answered, where that is the reason. */
    readonly problem: ProblemJson | null = null,
  ) {
    super(message)
  }
}

/** Problem details as the API sends them (RFC 9457). */
export interface ProblemJson {
  title: string
  status: number
  detail: string
  code: string
  fix: string
  request_id: string
  /** With `no-matching-message`: the messages that came nearest to a match. */
  nearest?: { id: string; subject: string | null; received_at: string; mismatches: string[] }[]
  errors?: { detail: string }[]
}

/** The failure that an answer stands for; `problem` is null where it was none of Mayfly's. */
export function failureOf(status: number, problem: ProblemJson | null): Failure {
  const exitCode = exitCodeOf(status)
  if (problem === null) return new Failure(exitCode, `the answer was ${status}, and not from Mayfly`)
  const { title, detail, fix, code, request_id: requestId, nearest = [] } = problem
  const misses = nearest.map(({ id, subject, received_at: receivedAt, mismatches }) =>
    oneLine(`${id}, ${receivedAt}, ${subject ?? '(no subject)'}: ${mismatches.join(', ')}`),
  )
  const lines = [
    `${title}: ${detail}`,
    ...misses.map((miss) => `  ${miss}`),
    `To fix it: ${fix}`,
    `(${code}, ${status}, request ${requestId})`,
  ]
  return new Failure(exitCode, lines.join('\n'), problem)
}

function exitCodeOf(status: number): ExitCode {
  switch (status) {
    case 400:
    case 413:
      return EXIT.usage
    case 401:
    case 403:
      return EXIT.refused
    case 404:
    case 410:
      return EXIT.notFound
    case 409:
    case 429:
    case 502:
    case 503:
    case 504:
      return EXIT.unavailable
    default:
      return EXIT.failed
  }
}
