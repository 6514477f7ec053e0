import type { IncomingMessage } from 'node:http'
import type { Readable, Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { ClickHouseException, notImplemented } from './exception.js'

interface Method {
  pack: () => Transform
  unpack: () => Transform
}

const METHODS: Readonly<Record<string, Method>> = {
  gzip: { pack: () => zlib.createGzip(), unpack: () => zlib.createGunzip() },
  deflate: { pack: () => zlib.createDeflate(), unpack: () => zlib.createInflate() },
  br: { pack: () => zlib.createBrotliCompress(), unpack: () => zlib.createBrotliDecompress() },
  zstd: { pack: () => zlib.createZstdCompress(), unpack: () => zlib.createZstdDecompress() },
}

/** The compression of the answer that the request accepts; null if it accepts none of these. */
export function answerCompression(request: IncomingMessage): { name: string; pack: () => Transform } | null {
  const accepted = request.headers['accept-encoding'] ?? ''
  const [name = ''] = accepted.split(',').map((each) => each.replace(/;.*/, '').trim().toLowerCase())
  const method = METHODS[name]
  return method === undefined ? null : { name, pack: method.pack }
}

/** Rejects, and stops reading, if the uncompressed body is larger than `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  // The connection stays open for the refusal.
  const body = uncompressed(request).iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  for await (const piece of body) {
    length += piece.length
    if (length > maxBytes) throw tooLong(maxBytes)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function uncompressed(request: IncomingMessage): Readable {
  const name = request.headers['content-encoding'] ?? 'identity'
  if (name === 'identity' || name === '') return request
  const method = METHODS[name.toLowerCase()]
  if (method === undefined) throw notImplemented(`Unknown compression method ${name}.`)
  const unpack = method.unpack()
  request.once('error', (error) => unpack.destroy(error))
  request.once('aborted', () => unpack.destroy(new Error('the request was aborted')))
  return request.pipe(unpack)
}

function tooLong(maxBytes: number): ClickHouseException {
  return new ClickHouseException(307, 'TOO_MANY_BYTES', `A request may have ${maxBytes} bytes of body.`)
}
