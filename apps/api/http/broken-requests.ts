import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { note } from './access-log.js'
import { setSafeHeaders } from './answer-headers.js'
import { endWithProblem, PROBLEM_TYPE, problemBody } from './problem-answer.js'
import { invalid, Problem } from './problems.js'

/** What is needed to answer where there is no request yet. */
export interface BrokenRequestsOptions {
  publicUrl: () => string
  makeRequestId: () => string
  logger: Pick<Logger, 'info'>
}

/** Bytes that are no HTTP, or too many of them, or too late (RFC 9112). A 408 would be repeated by some clients. */
export function answerClientErrors(options: BrokenRequestsOptions) {
  return (error: Error & { code?: string }, socket: Duplex): void => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else answerSocket(socket, problemOf(error), options)
  }
}

export interface UnreadablePathOptions {
  publicUrl: () => string
  /** Notes a request and begins its answer, whatever becomes of it. */
  welcome: (request: FastifyRequest, reply: FastifyReply) => unknown
  /** What every request goes through before it is answered; throws where it is refused. */
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/** A path that can't be decoded reaches no hook and no handler; it is authenticated and counted all the same. */
export function answerFrameworkErrors({ publicUrl, welcome, admit }: UnreadablePathOptions) {
  return (_: Error, request: FastifyRequest, reply: FastifyReply): void => {
    const unreadable = new Problem('invalid-request', { detail: 'The path is not validly percent-encoded.' })
    welcome(request, reply)
    setSafeHeaders(reply)
    const refusal = admit(request, reply).then(
      () => unreadable,
      (error: unknown) => (error instanceof Problem ? error : unreadable),
    )
    void refusal.then((problem) => {
      note(request, { problem: problem.code })
      return reply
        .code(problem.status)
        .headers(problem.options.headers ?? {})
        .type(PROBLEM_TYPE)
        .send(problemBody(problem, request.id, publicUrl()))
    })
  }
}

/** What Node would answer by itself, without a body that says why. */
export function answerBesideRequests(server: Server, options: BrokenRequestsOptions): void {
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    const problem = new Problem('invalid-request', { detail: 'CONNECT is for proxies, which this is not.' })
    answerSocket(socket, problem, options)
  })
  // An expectation other than 100-continue need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response)
  })
}

/** The line that such a request has in the log. */
function answerSocket(socket: Duplex, problem: Problem, options: BrokenRequestsOptions): void {
  const { publicUrl, makeRequestId, logger } = options
  const reqId = makeRequestId()
  const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined
  logger.info({ reqId, status: problem.status, problem: problem.code, remoteAddress }, 'request')
  endWithProblem(socket, problem, reqId, publicUrl())
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

/** RFC 9112, section 3.2: a request of HTTP/1.1 names its host, and none names it twice. */
export function mustNameHost({ raw: { httpVersion, headers, rawHeaders } }: FastifyRequest): void {
  if (headers.host === undefined) {
    if (httpVersion === '1.1') throw invalid({ detail: 'The header Host is missing.', header: 'Host' })
  } else if (timesIn(rawHeaders, 'host') > 1) {
    throw invalid({ detail: 'The header Host comes more than once.', header: 'Host' })
  }
}

/** How often a header comes among names and values in turn. */
function timesIn(rawHeaders: readonly string[], name: string): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length
}

/**
 * Throws where others on the way may have read another end of the body than Node does (RFC 9112, section 6.1): what comes
 * behind it on the connection is not to be believed.
 */
export function mustBeFramed({ raw: { httpVersion, headers } }: FastifyRequest): void {
  const coding = headers['transfer-encoding']
  if (coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')) return
  const detail = 'Transfer-Encoding may be chunked and nothing else, and comes with HTTP/1.1 alone.'
  const errors = [{ detail, header: 'Transfer-Encoding' }]
  throw new Problem('invalid-request', { detail, errors, headers: { connection: 'close' } })
}
