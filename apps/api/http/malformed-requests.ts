import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { invalid, Problem } from './problems.js'

/*
 * Refuses requests that are not valid HTTP (RFC 9112), or whose end a proxy may find elsewhere than Node.
 */

type AnswerSocket = (socket: Duplex, problem: Problem) => void

/**
 * Answers bytes that are not HTTP, too long or too late. Such a request is answered 400 even if it is late: some
 * clients repeat a request that is answered 408.
 */
export function clientErrorHandler(answerSocket: AnswerSocket) {
  return (error: Error & { code?: string }, socket: Duplex): void => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else answerSocket(socket, problemOf(error))
  }
}

/** Answers requests that Node would otherwise answer itself, without a body that says why. */
export function answerBesideRequests(server: Server, answerSocket: AnswerSocket): void {
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    const detail = 'CONNECT is for proxies, and this server is not a proxy.'
    answerSocket(socket, new Problem('invalid-request', { detail }))
  })
  // An expectation other than 100-continue need not be met (RFC 9110, section 10.1.1).
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response)
  })
}

const DETAILS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'The request line and headers are over 16 KiB.',
  ERR_HTTP_REQUEST_TIMEOUT: 'The request did not arrive in time.',
}

function problemOf({ code, message }: Error & { code?: string }): Problem {
  const why = message.replace(/^Parse Error: /, '')
  const detail = DETAILS[code ?? ''] ?? `The request is not valid HTTP: ${why}.`
  return new Problem('invalid-request', { detail })
}

/** An HTTP/1.1 request must have the header Host, and no request may have it twice (RFC 9112, section 3.2). */
export function requireHost({ raw: { httpVersion, headers, rawHeaders } }: FastifyRequest): void {
  if (headers.host === undefined) {
    if (httpVersion === '1.1') throw invalid({ detail: 'The header Host is missing.', header: 'Host' })
    return
  }
  // Names and values alternate.
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host')
  if (hosts.length > 1) throw invalid({ detail: 'The header Host is sent more than once.', header: 'Host' })
}

export function requireFraming({ raw }: FastifyRequest): void {
  if (isFramed(raw)) return
  const detail = 'Transfer-Encoding must be chunked, and requires HTTP/1.1.'
  throw invalid({ detail, header: 'Transfer-Encoding' })
}

/** Whether every proxy on the way finds the same end of the body as Node (RFC 9112, section 6.1). */
export function isFramed({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}
