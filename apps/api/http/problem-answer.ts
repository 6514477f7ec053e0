import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { note } from './access-log.js'
import { SAFE_HEADERS } from './headers.js'
import { PROBLEMS, type Problem } from './problems.js'

/** Problem details (RFC 9457). */
const PROBLEM_TYPE = 'application/problem+json'

/** Answers a request with a problem. `publicUrl` is what its type begins with. */
export async function sendProblem(
  problem: Problem,
  request: FastifyRequest,
  reply: FastifyReply,
  publicUrl: string,
): Promise<void> {
  note(request, { problem: problem.code })
  await reply
    .code(problem.status)
    .headers(problem.options.headers ?? {})
    .type(PROBLEM_TYPE)
    .send(problemBody(problem, request.id, publicUrl))
}

function problemBody({ code, options }: Problem, requestId: string, publicUrl: string): string {
  const { status, title, fix } = PROBLEMS[code]
  const { detail, errors, members = {} } = options
  const problem = {
    type: `${publicUrl}/problems/${code}`,
    title,
    status,
    detail,
    code,
    fix,
    request_id: requestId,
    ...members,
    ...(errors === undefined ? {} : { errors }),
  }
  return JSON.stringify(problem, wellFormed)
}

/** What is quoted of a request may hold half a surrogate pair, which strict readers of JSON refuse (RFC 7493, section 2.1). */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value
}

/** Answers what never became a request, and closes the connection: behind it nothing can be told apart. */
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
