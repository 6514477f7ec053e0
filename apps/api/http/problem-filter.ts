import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Settings } from '#libs/runtime/config/settings.js'
import { SETTINGS } from '#libs/runtime/config/settings-table.js'
import { messageOf } from '#libs/runtime/errors.js'
import { BudgetExhaustedError } from '#libs/runtime/fairness/budget.js'
import { KeyForgottenError, KeyVaultUnavailableError } from '#libs/ports/key-vault/key-vault.js'
import { IdempotencyUnavailableError } from '#libs/ports/idempotency/idempotency-store.js'
import { LogUnavailableError } from '#libs/ports/event-log/event-log.js'
import { ViewsCatchingUpError } from '#libs/ports/read-model/consistent-views.js'
import { ReadModelUnavailableError } from '#libs/ports/read-model/view-store.js'
import { UsageUnavailableError } from '#libs/ports/usage/usage-store.js'
import { pathOf } from './list-pages.js'
import { methodNotAllowed, type MethodTable } from './method-table.js'
import { Problem, unavailable } from './problems.js'
import { note } from './access-log.js'
import { SAFE_HEADERS } from './headers.js'

/** Paths that exist only if a setting is true. */
const SWITCHES = [
  { path: '/mcp', setting: 'servesMcp' },
  { path: '/api/v1', setting: 'mailpitApi' },
  { path: '/public', setting: 'publicInbox' },
] as const

/** Answers every error as problem details (RFC 9457). An unexpected error is logged once, and its text is not sent. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(
    private readonly publicUrl: () => string,
    private readonly methods: MethodTable,
    private readonly settings: Pick<Settings, (typeof SWITCHES)[number]['setting']>,
  ) {}

  catch(error: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp()
    return this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>())
  }

  /** Also for routes that are not Nest's. */
  async answer(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await sendProblem(this.explain(error, request), reply, this.publicUrl())
  }

  /** The problem of an error as JSON, for an answer that has begun. */
  bodyOf(error: unknown, request: FastifyRequest): string {
    const problem = this.explain(error, request)
    note(request, { problem: problem.code })
    return problemBody(problem, request.id, this.publicUrl())
  }

  /** The problem of an error. An unexpected error is logged. */
  explain(error: unknown, request: FastifyRequest): Problem {
    const problem = this.problemOf(error, request)
    if (problem.code === 'internal-error') request.log.error({ err: error }, 'a request failed')
    return problem
  }

  private problemOf(error: unknown, request: FastifyRequest): Problem {
    // A path or method that does not exist is reported before any error in the body.
    if (request.is404 && isAboutBody(error)) return this.noRoute(request)
    if (error instanceof Problem) return error
    if (error instanceof ViewsCatchingUpError) return unavailable('catching-up', error.message)
    // The account was closed after the request had been accepted.
    if (error instanceof KeyForgottenError) return new Problem('account-suspended', { detail: error.message })
    if (error instanceof LogUnavailableError || error instanceof KeyVaultUnavailableError) {
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      return unavailable('log-unavailable', isRead ? LOG_UNREADABLE : LOG_UNCONFIRMED)
    }
    const [, code, detail] = UNAVAILABLE.find(([kind]) => error instanceof kind) ?? []
    if (code !== undefined) return unavailable(code, detail)
    switch (statusOf(error)) {
      case 404:
        return this.noRoute(request)
      case 415:
        return new Problem('unsupported-media-type', { detail: 'Only application/json is accepted.' })
      case 400:
        return new Problem('malformed-json', { detail: messageOf(error) })
      default:
        return new Problem('internal-error', { detail: 'The request could not be answered.' })
    }
  }

  private noRoute(request: FastifyRequest): Problem {
    const { method } = request
    const path = pathOf(request)
    const allowed = this.methods.allowedAt(path)
    if (allowed.length === 0 || allowed.includes(method)) {
      const off = SWITCHES.find(
        (each) => `${path}/`.startsWith(`${each.path}/`) && !this.settings[each.setting],
      )
      const hint = off === undefined ? '' : ` ${SETTINGS[off.setting].variable}=true on the server adds it.`
      return new Problem('not-found', { detail: `There is no resource at ${path.slice(0, 200)}.${hint}` })
    }
    return methodNotAllowed(method, allowed)
  }
}

function isAboutBody(error: unknown): boolean {
  return [400, 413, 415].includes(error instanceof Problem ? error.status : statusOf(error))
}

function statusOf(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus()
  if (error instanceof Error && 'statusCode' in error) return Number(error.statusCode)
  return 500
}

const LOG_UNREADABLE = "The event log can't be read at the moment."
const LOG_UNCONFIRMED = 'The change may not have been stored: the event log did not confirm it.'

const UNAVAILABLE = [
  [
    BudgetExhaustedError,
    'busy',
    'Other large requests of this account, or of others, did not finish in time.',
  ],
  [ReadModelUnavailableError, 'read-model-unavailable', "The stored data can't be read at the moment."],
  [UsageUnavailableError, 'read-model-unavailable', "Usage can't be read at the moment."],
  [
    IdempotencyUnavailableError,
    'read-model-unavailable',
    "Idempotency keys can't be looked up at the moment.",
  ],
] as const

/** Problem details (RFC 9457). */
const PROBLEM_TYPE = 'application/problem+json'

export async function sendProblem(problem: Problem, reply: FastifyReply, publicUrl: string): Promise<void> {
  const { request } = reply
  note(request, { problem: problem.code })
  await reply
    .code(problem.status)
    .headers(problem.options.headers ?? {})
    .type(PROBLEM_TYPE)
    .send(problemBody(problem, request.id, publicUrl))
}

function problemBody(problem: Problem, requestId: string, publicUrl: string): string {
  return JSON.stringify(problem.toJson(requestId, publicUrl), wellFormed)
}

/** Text from a request may have a lone surrogate, which strict JSON parsers refuse (RFC 7493, section 2.1). */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value
}

/**
 * Answers bytes that are not a valid request, and closes the connection, since the bytes after them can't be parsed.
 */
export function endWithProblem(socket: Duplex, problem: Problem, requestId: string, publicUrl: string): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const body = problemBody(problem, requestId, publicUrl)
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
    `content-type: ${PROBLEM_TYPE}; charset=utf-8`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    ...Object.entries(SAFE_HEADERS).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
