import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { endWithProblem, PROBLEM_TYPE, problemBody } from './problem-answer.js'
import { invalid, Problem } from './problems.js'

/** What is needed to answer where there is no request yet. */
export interface BrokenRequestsOptions {
  publicUrl: () => string
  makeRequestId: () => string
}

/** Bytes that are no HTTP, or too many of them, or too late (RFC 9112). A 408 would be repeated by some clients. */
export function answerClientErrors({ publicUrl, makeRequestId }: BrokenRequestsOptions) {
  return (error: Error & { code?: string }, socket: Duplex): void => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else endWithProblem(socket, problemOf(error), makeRequestId(), publicUrl())
  }
}

export interface UnreadablePathOptions {
  publicUrl: () => string
  /** What every request goes through before it is answered; throws where it is refused. */
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/** A path that can't be decoded reaches no hook and no handler; it is authenticated and counted all the same. */
export function answerFrameworkErrors({ publicUrl, admit }: UnreadablePathOptions) {
  return (_: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const unreadable = new Problem('invalid-request', { detail: 'The path is not validly percent-encoded.' })
    const refusal = admit(request, reply).then(
      () => unreadable,
      (error: unknown) => (error instanceof Problem ? error : unreadable),
    )
    void refusal.then((problem) =>
      reply
        .code(problem.status)
        .headers(problem.options.headers ?? {})
        .type(PROBLEM_TYPE)
        .send(problemBody(problem, request.id, publicUrl())),
    )
  }
}

/** What Node would answer by itself, without a body that says why. */
export function answerBesideRequests(
  server: Server,
  { publicUrl, makeRequestId }: BrokenRequestsOptions,
): void {
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    const problem = new Problem('invalid-request', { detail: 'CONNECT is for proxies, which this is not.' })
    endWithProblem(socket, problem, makeRequestId(), publicUrl())
  })
  // An expectation other than 100-continue need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response)
  })
}

const BROKEN: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'The request line and headers are over 16 KiB.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not come in time.',
}

function problemOf({ code, message }: Error & { code?: string }): Problem {
  const why = message.replace(/^Parse Error: /, '')
  const detail = BROKEN[code ?? ''] ?? `The request is not valid HTTP: ${why}.`
  return new Problem('invalid-request', { detail })
}

/** RFC 9112, section 3.2: a request of HTTP/1.1 names its host. */
export function mustNameHost({ raw: { httpVersion, headers } }: FastifyRequest): void {
  if (httpVersion !== '1.1' || headers.host !== undefined) return
  throw invalid({ detail: 'The header Host is missing.', header: 'Host' })
}
