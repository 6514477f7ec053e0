import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { invalid, Problem } from './problems.js'

/** Answers a connection whose bytes never became a request. */
type AnswerSocket = (socket: Duplex, problem: Problem) => void

/** Bytes that are not HTTP, or too many of them, or too late (RFC 9112). A 408 would be repeated by some clients. */
export function clientErrorHandler(answerSocket: AnswerSocket) {
  return (error: Error & { code?: string }, socket: Duplex): void => {
    if (error.code === 'ECONNRESET') socket.destroy()
    else answerSocket(socket, problemOf(error))
  }
}

/** What Node would answer by itself, without a body that says why. */
export function answerBesideRequests(server: Server, answerSocket: AnswerSocket): void {
  server.on('connect', (_: IncomingMessage, socket: Duplex) => {
    const detail = 'CONNECT is for proxies, which this is not.'
    answerSocket(socket, new Problem('invalid-request', { detail }))
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

/** RFC 9112, section 3.2: a request of HTTP/1.1 names its host, and none names it twice. */
export function requireHost({ raw: { httpVersion, headers, rawHeaders } }: FastifyRequest): void {
  if (headers.host === undefined) {
    if (httpVersion === '1.1') throw invalid({ detail: 'The header Host is missing.', header: 'Host' })
    return
  }
  // Names and values alternate.
  const hosts = rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === 'host')
  if (hosts.length > 1) throw invalid({ detail: 'The header Host comes more than once.', header: 'Host' })
}

export function requireFraming({ raw }: FastifyRequest): void {
  if (isFramed(raw)) return
  const detail = 'Transfer-Encoding may be chunked and nothing else, and comes with HTTP/1.1 alone.'
  throw invalid({ detail, header: 'Transfer-Encoding' })
}

/** Whether every proxy on the way finds the same end of the body as Node (RFC 9112, section 6.1). */
export function isFramed({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}
