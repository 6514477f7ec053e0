import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Reflector } from '@nestjs/core'
import { RouteConfig } from '@nestjs/platform-fastify'
import { FASTIFY_ROUTE_CONFIG_METADATA } from '@nestjs/platform-fastify/constants.js'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf } from '#libs/runtime/errors.js'
import { note } from './access-log.js'
import { Problem } from './problems.js'
import { NDJSON } from './media-types.js'

export const MAX_LINES_BYTES = 512 * 1024 * 1024

export interface BodyRules {
  maxJsonBytes: number
  /** Whether the body may also be a mail, in the media type `message/rfc822`. */
  acceptsMail?: boolean
  /** Whether the body is lines of JSON, which the handler reads with `linesBodyOf`. */
  hasLines?: boolean
}

const DEFAULT_RULES: BodyRules = { maxJsonBytes: 256 * 1024 }
const JSON_TYPE = /^application\/json[ \t]*(;|$)/i
const LINES_TYPE = /^application\/x-ndjson[ \t]*(;|$)/i
const MAIL_TYPE = /^message\/rfc822[ \t]*(;|$)/i
const MAX_DISCARDED_BYTES = 4 * 1024 * 1024
/** The mean size of a body's pieces, at least: a body could be 262,144 chunks of one byte. */
const MIN_PIECE_BYTES = 16
/** The same for a body that is discarded: less than the segments that a network usually carries. */
const MIN_DISCARDED_PIECE_BYTES = 1024
/** Bodies over this size need memory from the account's budget. */
export const SMALL_BODY_BYTES = 16 * 1024

const BYTES = Symbol('bytes')
type RequestWithBytes = FastifyRequest & { [BYTES]?: Buffer }

/** The handler takes other bodies than JSON of at most 256 KiB. */
export function TakeBody(rules: Partial<BodyRules>): MethodDecorator {
  return RouteConfig(rules)
}

export function acceptsMail(reflector: Reflector, handler: Parameters<Reflector['get']>[1]): boolean {
  const rules = reflector.get<Partial<BodyRules> | undefined>(FASTIFY_ROUTE_CONFIG_METADATA, handler)
  return rules?.acceptsMail ?? false
}

/** The bytes of the body; `{}` if it is empty. */
export function bodyBytesOf(request: RequestWithBytes): Uint8Array {
  return request[BYTES] ?? Buffer.from('{}')
}

/** Reads the bodies of requests. A mail may have `maxMailBytes`. */
export class RequestBodies {
  constructor(private readonly maxMailBytes: number) {}

  /**
   * Makes the server parse bodies as JSON in UTF-8 (RFC 8259, section 8.1), and keep the bytes of a mail if the handler
   * accepts one. An empty body of any other `Content-Type` counts as `{}`. A body of lines is not read: its handler reads
   * it with `linesBodyOf`.
   */
  parseOn(server: FastifyInstance): void {
    server.removeAllContentTypeParsers()
    server.addContentTypeParser('*', (request: RequestWithBytes) => this.read(request))
  }

  private async read(request: RequestWithBytes): Promise<unknown> {
    const type = request.headers['content-type'] ?? ''
    const { hasLines = false, acceptsMail = false } = rulesOf(request)
    if (hasLines && LINES_TYPE.test(type)) {
      requireIdentity(request)
      return undefined
    }
    const body = await readBody(request, this.limitOf(request))
    if (isMail(request)) {
      requireIdentity(request)
      request[BYTES] = body
      return body
    }
    if (!hasLines && JSON_TYPE.test(type)) return parse(request, body)
    if (body.length === 0) return {}
    const accepted = acceptsMail ? 'application/json and message/rfc822' : 'application/json'
    throw unsupported(`Only ${hasLines ? NDJSON : accepted} is accepted.`)
  }

  /**
   * The memory that a request's body needs at most: its `Content-Length`, unless it is sent in chunks, within the limit. A
   * body of lines takes its memory while it is read.
   */
  memoryOf(request: FastifyRequest): number {
    if (rulesOf(request).hasLines === true) return 0
    return Math.min(declaredBytes(request.raw), this.limitOf(request))
  }

  private limitOf(request: FastifyRequest): number {
    return isMail(request) ? this.maxMailBytes : rulesOf(request).maxJsonBytes
  }
}

function rulesOf({ routeOptions }: FastifyRequest): BodyRules {
  return { ...DEFAULT_RULES, ...(routeOptions.config as Partial<BodyRules> | undefined) }
}

/** Whether the body is a mail, and the handler accepts one. */
function isMail(request: FastifyRequest): boolean {
  return rulesOf(request).acceptsMail === true && MAIL_TYPE.test(request.headers['content-type'] ?? '')
}

/** The size that a body has at most by its `Content-Length`; infinite if it is sent in chunks. */
function declaredBytes({ headers }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return Infinity
  return Number(headers['content-length'] ?? 0)
}

/**
 * Reads a body into one buffer, since each piece, however small, is an object of 340 bytes. Throws body-too-large, and
 * invalid-request if the connection ends before the body.
 */
async function readBody(request: RequestWithBytes, limit: number): Promise<Buffer> {
  const { raw } = request
  const declared = declaredBytes(raw)
  if (Number.isFinite(declared) && declared > limit) throw tooLarge(limit)
  let bytes = Buffer.allocUnsafeSlow(Math.min(declared, SMALL_BODY_BYTES))
  let length = 0
  await readPieces(raw, limit, (piece) => {
    const needed = length + piece.length
    if (needed > bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(needed, 2 * bytes.length), limit))
      bytes.copy(larger)
      bytes = larger
    }
    piece.copy(bytes, length)
    length = needed
  })
  note(request, { bodyBytes: length })
  return bytes.subarray(0, length)
}

/**
 * The bytes of a body of lines. Throws body-too-large, and invalid-request if the connection ends before the body. If the
 * reader stops early, the rest is discarded, so that the client reads its answer.
 */
export async function* linesBodyOf(request: FastifyRequest): AsyncGenerator<Buffer> {
  const { raw } = request
  if (declaredBytes(raw) > MAX_LINES_BYTES && declaredBytes(raw) !== Infinity) throw tooLarge(MAX_LINES_BYTES)
  let length = 0
  try {
    for await (const piece of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += piece.length
      if (length > MAX_LINES_BYTES) throw tooLarge(MAX_LINES_BYTES)
      yield piece
    }
  } catch (error) {
    throw error instanceof Problem ? error : unfinished()
  } finally {
    raw.resume()
    note(request, { bodyBytes: length })
  }
}

/** Reads and discards a body, so that the client reads its answer. Closes the connection after 4 MiB, or 4,096 pieces. */
export function discardBody(raw: IncomingMessage): void {
  if (declaredBytes(raw) === 0) return
  readPieces(raw, MAX_DISCARDED_BYTES, () => undefined, MIN_DISCARDED_PIECE_BYTES).catch(() =>
    raw.socket.destroy(),
  )
}

/** Resolves at the end of a body. Rejects with body-too-large if it has too many bytes or pieces. */
function readPieces(
  raw: IncomingMessage,
  maxBytes: number,
  take: (piece: Buffer) => void,
  minPieceBytes = MIN_PIECE_BYTES,
): Promise<void> {
  let left = maxBytes
  let piecesLeft = Math.ceil(maxBytes / minPieceBytes)
  return new Promise((resolve, reject) => {
    raw.on('data', (piece: Buffer) => {
      left -= piece.length
      piecesLeft -= 1
      if (left < 0) reject(tooLarge(maxBytes))
      else if (piecesLeft < 0) reject(tooLarge(maxBytes, `, in chunks of ${minPieceBytes} bytes on average`))
      else take(piece)
    })
    raw.once('end', resolve)
    raw.once('error', () => {
      reject(unfinished())
    })
  })
}

/** The names of properties, such as `__proto__`, are validated later, by the class of the body. */
function parse(request: RequestWithBytes, body: Buffer): unknown {
  requireIdentity(request)
  if (!isUtf8(body)) throw new Problem('malformed-json', { detail: 'The body is not valid UTF-8.' })
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') return {}
  request[BYTES] = body
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('malformed-json', { detail: messageOf(error) })
  }
}

function requireIdentity({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw unsupported(`The Content-Encoding ${encoding} is not supported.`)
}

function unfinished(): Problem {
  return new Problem('invalid-request', { detail: 'The connection ended before the body.' })
}

function tooLarge(maxBytes: number, how = ''): Problem {
  return new Problem('body-too-large', { detail: `A body may have at most ${maxBytes} bytes${how}.` })
}

function unsupported(detail: string): Problem {
  return new Problem('unsupported-media-type', { detail })
}
