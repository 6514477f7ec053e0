import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import { setSafeHeaders } from './headers.js'
import { endWithProblem, sendProblem } from './problem-filter.js'
import { invalid, Problem } from './problems.js'
import type { RefusalLines } from './access-log.js'

/** What is needed to answer where there is no request yet. */
export interface BrokenRequestsOptions {
  publicUrl: () => string
  makeRequestId: () => string
  logger: Pick<Logger, 'info'>
  refusals: RefusalLines
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
  /** Waits for the turn of a request, notes it and begins its answer, whatever becomes of it. */
  welcome: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
  /** What every request goes through before it is answered; throws if it is refused. */
  admit: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/** A path that can't be decoded reaches no hook and no handler; it is authenticated and counted all the same. */
export function answerFrameworkErrors({ publicUrl, welcome, admit }: UnreadablePathOptions) {
  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const unreadable = new Problem('invalid-request', { detail: 'The path is not validly percent-encoded.' })
    await welcome(request, reply)
    setSafeHeaders(reply)
    const problem = await admit(request, reply).then(
      () => unreadable,
      (error: unknown) => (error instanceof Problem ? error : unreadable),
    )
    await sendProblem(problem, request, reply, publicUrl())
  }
  return (_: Error, request: FastifyRequest, reply: FastifyReply): void => void answer(request, reply)
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

/** Logs the request too, unless others of its remote address have failed in the same second. */
function answerSocket(socket: Duplex, problem: Problem, options: BrokenRequestsOptions): void {
  const { publicUrl, makeRequestId, logger, refusals } = options
  const reqId = makeRequestId()
  const { status } = problem
  const remoteAddress = socket instanceof Socket ? socket.remoteAddress : undefined
  if (refusals.count({ remoteAddress: addressGroup(plainAddress(remoteAddress)), status })) {
    logger.info({ reqId, status, problem: problem.code, remoteAddress }, 'request')
  }
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
export function requireHost({ raw: { httpVersion, headers, rawHeaders } }: FastifyRequest): void {
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

export function requireFraming({ raw }: FastifyRequest): void {
  if (isFramed(raw)) return
  const detail = 'Transfer-Encoding may be chunked and nothing else, and comes with HTTP/1.1 alone.'
  throw invalid({ detail, header: 'Transfer-Encoding' })
}

/** Whether everybody on the way sees the end of the body where Node does (RFC 9112, section 6.1). */
export function isFramed({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}
