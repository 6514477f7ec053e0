import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { messageOf } from '#libs/runtime/errors.js'
import { note } from './access-log.js'
import { Problem } from './problems.js'
import { NDJSON } from './validation.js'

const MAX_BODY_BYTES = 256 * 1024
/** Enough for the ids of 10,000 inboxes. */
const MAX_IDS_BYTES = 512 * 1024
const HAS_IDS = /^\/v1\/(inboxes|emails)\/bulk-delete$/
/** The body of a verification, which is read as a stream of lines. */
const HAS_LINES = /^\/v1\/runs\/:label\/verify$/
export const MAX_LINES_BYTES = 512 * 1024 * 1024
const MAX_DISCARDED_BYTES = 4 * 1024 * 1024
/** Smaller pieces of a body count as this many bytes: a body could be 262,144 chunks of one byte. */
const MIN_PIECE_BYTES = 16
/** Bodies over this size need memory from the account's budget. */
export const SMALL_BODY_BYTES = 16 * 1024

const BYTES = Symbol('bytes')
type RequestWithBytes = FastifyRequest & { [BYTES]?: Buffer }

/** The bytes of the body; `{}` if it is empty or not JSON. */
export function bodyBytesOf(request: RequestWithBytes): Uint8Array {
  return request[BYTES] ?? Buffer.from('{}')
}

/**
 * Makes the server parse bodies as JSON in UTF-8 (RFC 8259, section 8.1). An empty body of any `Content-Type` counts as
 * `{}`. A body of lines is not read: its handler reads it with `linesBodyOf`.
 */
export function parseJsonBodies(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', async (request: RequestWithBytes) =>
    hasLines(request) ? readEmptyBody(request) : parse(request, await readBody(request)),
  )
  server.addContentTypeParser(NDJSON, async (request: RequestWithBytes) => {
    if (!hasLines(request)) return readEmptyBody(request)
    requireIdentity(request)
    return undefined
  })
  server.addContentTypeParser('*', readEmptyBody)
}

function hasLines({ routeOptions: { url = '' } }: FastifyRequest): boolean {
  return HAS_LINES.test(url)
}

async function readEmptyBody(request: RequestWithBytes): Promise<object> {
  const body = await readBody(request)
  if (body.length === 0) return {}
  throw unsupported(`Only ${hasLines(request) ? NDJSON : 'application/json'} is accepted.`)
}

/** The maximum size that a request's body may have. */
function bodyLimitOf({ routeOptions: { url = '' } }: FastifyRequest): number {
  return HAS_IDS.test(url) ? MAX_IDS_BYTES : MAX_BODY_BYTES
}

/**
 * The memory that a request's body needs at most: its `Content-Length`, unless it is sent in chunks, within the limit. A
 * body of lines takes its memory while it is read.
 */
export function bodyMemoryOf(request: FastifyRequest): number {
  if (hasLines(request)) return 0
  return Math.min(declaredBytes(request.raw), bodyLimitOf(request))
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
async function readBody(request: RequestWithBytes): Promise<Buffer> {
  const { raw } = request
  const limit = bodyLimitOf(request)
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

/** Reads and discards a body, so that the client reads its answer. Closes the connection after 4 MiB. */
export function discardBody(raw: IncomingMessage): void {
  if (declaredBytes(raw) === 0) return
  readPieces(raw, MAX_DISCARDED_BYTES, () => undefined).catch(() => raw.socket.destroy())
}

/** Resolves at the end of a body. Rejects with body-too-large if it has too many bytes or pieces. */
function readPieces(raw: IncomingMessage, maxBytes: number, take: (piece: Buffer) => void): Promise<void> {
  let left = maxBytes
  return new Promise((resolve, reject) => {
    raw.on('data', (piece: Buffer) => {
      left -= Math.max(piece.length, MIN_PIECE_BYTES)
      if (left < 0) reject(tooLarge(maxBytes))
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

/** Throws unsupported-media-type for a compressed body. */
function requireIdentity({ headers }: FastifyRequest): void {
  const encoding = headers['content-encoding']
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return
  throw unsupported(`The Content-Encoding ${encoding} is not supported.`)
}

function unfinished(): Problem {
  return new Problem('invalid-request', { detail: 'The connection ended before the body.' })
}

function tooLarge(maxBytes: number): Problem {
  return new Problem('body-too-large', { detail: `A body may have at most ${maxBytes} bytes.` })
}

function unsupported(detail: string): Problem {
  return new Problem('unsupported-media-type', { detail })
}
