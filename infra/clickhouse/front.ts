import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { answerCompression } from './compression.js'
import type { Engine, Outcome } from './engine.js'
import { exceptionFrom, type ClickHouseException } from './exception.js'
import { checkCredentials, readQuery, type Access } from './request.js'

/*
 * ClickHouse's HTTP interface (https://clickhouse.com/docs/interfaces/http) over the engine. An answer starts with the
 * first chunk of the result. If the rest fails, the answer ends with ClickHouse's exception marker, and the connection
 * is closed.
 */

export interface FrontOptions {
  engine: Engine
  access: Access
  maxBodyBytes: number
  /** Its certificate and key, as PEM; enables TLS. */
  tls: { cert: string; key: string } | null
}

const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^(JSON\w*EachRow\w*|JSONL|JSONLines|NDJSON)$/, 'application/x-ndjson; charset=UTF-8'],
  [/^JSON/, 'application/json; charset=UTF-8'],
  [/^CSV/, 'text/csv; charset=UTF-8'],
  [/^(TSV|TabSeparated)/, 'text/tab-separated-values; charset=UTF-8'],
  [/^(Native|RowBinary|Parquet|ORC|Avro|Arrow|MsgPack)/, 'application/octet-stream'],
]
/** The default limit of ClickHouse. */
const MAX_URL_BYTES = 1024 * 1024
/** Much longer than ClickHouse's client keeps an idle connection, so that the client never uses a closed one. */
const KEEP_ALIVE_MS = 300_000
const POLL_EVERY_MS = 50
const TEXT = 'text/plain; charset=UTF-8'

/** Creates the server; it does not listen yet. */
export function createFront(options: FrontOptions): Server {
  const http = { maxHeaderSize: MAX_URL_BYTES, keepAliveTimeout: KEEP_ALIVE_MS }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response, options).catch((error: unknown) => {
      // Either the connection broke, or this is a bug. Neither may end the server.
      process.stderr.write(`${String(error)}\n`)
      response.destroy()
    })
  }
  return options.tls === null
    ? createServer(http, listener)
    : createTlsServer({ ...http, ...options.tls }, listener)
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { engine, access, maxBodyBytes }: FrontOptions,
): Promise<void> {
  const url = URL.parse(request.url ?? '', 'http://clickhouse')
  response.setHeader('X-ClickHouse-Server-Display-Name', 'chdb')
  if (url === null) {
    end(response, 400, 'Bad Request\n')
    return
  }
  const known = answerWithoutQuery(request, url)
  if (known !== null) {
    end(response, ...known)
    return
  }
  response.setHeader('X-ClickHouse-Query-Id', idOf(url))
  response.setHeader('X-ClickHouse-Timezone', 'UTC')
  try {
    checkCredentials(request, url, access)
    const outcome = await engine.run(await readQuery(request, url, maxBodyBytes))
    await send(request, response, url, outcome, engine.version)
  } catch (error) {
    if (response.headersSent || response.destroyed) throw error
    refuse(request, response, exceptionFrom(error), engine.version)
  }
}

/** Answers requests that need no user and no engine; null for a query. */
function answerWithoutQuery(
  request: IncomingMessage,
  url: URL,
): readonly [status: number, text: string] | null {
  if (url.pathname === '/ping' || url.pathname === '/replicas_status') return [200, 'Ok.\n']
  if (url.pathname !== '/') return [404, `There is no handle ${url.pathname}\n`]
  if (request.method === 'GET') return url.search === '' ? [200, 'Ok.\n'] : null
  return request.method === 'POST' ? null : [405, 'Method Not Allowed\n']
}

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  outcome: Outcome,
  version: string,
): Promise<void> {
  const tag = randomBytes(8).toString('hex')
  const wantsPacked = url.searchParams.get('enable_http_compression') === '1'
  const compression = wantsPacked ? answerCompression(request) : null
  response.setHeader('X-ClickHouse-Summary', JSON.stringify(summaryOf(outcome)))
  response.setHeader('X-ClickHouse-Exception-Tag', tag)
  response.setHeader('Content-Type', typeOf(outcome.format))
  if (outcome.format !== null) response.setHeader('X-ClickHouse-Format', outcome.format)
  if (compression !== null) response.setHeader('Content-Encoding', compression.name)
  const sent = { isWhole: true }
  const pieces = withMarker(outcome, (error) => {
    sent.isWhole = false
    return exceptionAtTheEnd(exceptionFrom(error).text(version), tag)
  })
  const packing = compression === null ? new PassThrough() : compression.pack()
  try {
    await pipeline(Readable.from(pieces, { objectMode: false }), packing, response, { end: false })
    if (sent.isWhole) response.end()
    // The marker is still sent. Then the connection is closed before the answer is complete.
    else response.socket?.end()
  } finally {
    await outcome.end()
  }
}

/** The chunks of the result, followed by an exception marker if reading fails. */
async function* withMarker(outcome: Outcome, mark: (error: unknown) => Buffer): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of outcome.pieces) if (piece.length > 0) yield piece
  } catch (error) {
    yield mark(error)
  }
}

/** The format of ClickHouse since 25.11. */
function exceptionAtTheEnd(text: string, tag: string): Buffer {
  const length = `${Buffer.byteLength(text)} ${tag}`
  return Buffer.from(`\r\n__exception__\r\n${tag}\r\n${text}${length}\r\n__exception__\r\n`)
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  exception: ClickHouseException,
  version: string,
): void {
  response.setHeader('X-ClickHouse-Exception-Code', exception.code)
  // The rest of the body is not read.
  if (!request.complete) response.setHeader('Connection', 'close')
  end(response, exception.status, exception.text(version))
}

function end(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': TEXT }).end(text)
}

/** Numbers are strings there. For a streamed result they are those of its start: zero. */
function summaryOf(outcome: Outcome): Record<string, string> {
  return {
    read_rows: String(outcome.readRows),
    read_bytes: String(outcome.readBytes),
    written_rows: String(outcome.writtenRows),
    written_bytes: String(outcome.writtenBytes),
    total_rows_to_read: '0',
    result_rows: String(outcome.writtenRows),
    result_bytes: String(outcome.writtenBytes),
    elapsed_ns: String(Math.round(outcome.elapsedS * 1e9)),
  }
}

function typeOf(format: string | null): string {
  const [, type = TEXT] = TYPES.find(([formats]) => formats.test(format ?? '')) ?? []
  return type
}

function idOf(url: URL): string {
  const given = url.searchParams.get('query_id') ?? ''
  return /^[\x21-\x7e]{1,200}$/.test(given) ? given : randomUUID()
}

/** Stops accepting connections. Resolves once every request is answered, or after `withinMs`. */
export async function closeFront(server: Server, withinMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const late = setTimeout(() => server.closeAllConnections(), withinMs)
  // Connections that were active when it closed.
  const idle = setInterval(() => server.closeIdleConnections(), POLL_EVERY_MS)
  await closed
  clearTimeout(late)
  clearInterval(idle)
}
