import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { answerCompression } from './compression.js'
import type { Engine, Outcome } from './engine.js'
import { exceptionFrom, type ClickHouseException } from './exception.js'
import { mustBeUser, readQuery, type Access } from './request.js'

/*
 * ClickHouse's HTTP interface (https://clickhouse.com/docs/interfaces/http) over the engine. An answer begins once the
 * first of the result is there; where the rest fails, it ends with ClickHouse's own mark of that, and the connection
 * is cut.
 */

export interface FrontOptions {
  engine: Engine
  access: Access
  mostBodyBytes: number
  /** The certificate that it shows and its key, as PEM; it speaks no TLS without them. */
  tls: { cert: string; key: string } | null
}

const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^(JSON\w*EachRow\w*|JSONL|JSONLines|NDJSON)$/, 'application/x-ndjson; charset=UTF-8'],
  [/^JSON/, 'application/json; charset=UTF-8'],
  [/^CSV/, 'text/csv; charset=UTF-8'],
  [/^(TSV|TabSeparated)/, 'text/tab-separated-values; charset=UTF-8'],
  [/^(Native|RowBinary|Parquet|ORC|Avro|Arrow|MsgPack)/, 'application/octet-stream'],
]
/** As ClickHouse's own limit. */
const MAX_URL_BYTES = 1024 * 1024
/** Far longer than ClickHouse's client keeps an idle connection, which must not ask where nobody listens any more. */
const KEEP_ALIVE_MS = 30_000
const LOOK_EVERY_MS = 50
const TEXT = 'text/plain; charset=UTF-8'

/** Does not listen yet. */
export function createFront(options: FrontOptions): Server {
  const http = { maxHeaderSize: MAX_URL_BYTES, keepAliveTimeout: KEEP_ALIVE_MS }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response, options).catch((error: unknown) => {
      // What is left is a connection that broke, or a defect here; neither may end the server.
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
  { engine, access, mostBodyBytes }: FrontOptions,
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
    mustBeUser(request, url, access)
    const outcome = await engine.run(await readQuery(request, url, mostBodyBytes))
    await send(request, response, url, outcome, engine.version)
  } catch (error) {
    if (response.headersSent || response.destroyed) throw error
    refuse(request, response, exceptionFrom(error), engine.version)
  }
}

/** What needs no user and no engine; null for a query. */
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
  const pieces = marked(outcome, (error) => {
    sent.isWhole = false
    return exceptionAtTheEnd(exceptionFrom(error).text(version), tag)
  })
  const packing = compression === null ? new PassThrough() : compression.pack()
  try {
    await pipeline(Readable.from(pieces, { objectMode: false }), packing, response, { end: false })
    if (sent.isWhole) response.end()
    // The mark goes out still, and then the connection ends before the answer does.
    else response.socket?.end()
  } finally {
    await outcome.end()
  }
}

/** The pieces; where reading them fails, what is to be said of it behind them. */
async function* marked(outcome: Outcome, mark: (error: unknown) => Buffer): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of outcome.pieces) if (piece.length > 0) yield piece
  } catch (error) {
    yield mark(error)
  }
}

/** As ClickHouse does since 25.11. */
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
  // What is left of the body is not read.
  if (!request.complete) response.setHeader('Connection', 'close')
  end(response, exception.status, exception.text(version))
}

function end(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': TEXT }).end(text)
}

/** All numbers are texts there. Of a result that is streamed they are those of its beginning: nothing. */
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

/** Takes no more connections; resolves once every request has its answer, or its time is over. */
export async function closeFront(server: Server, withinMs: number): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  const late = setTimeout(() => server.closeAllConnections(), withinMs)
  // Of those that were at work when it closed.
  const idle = setInterval(() => server.closeIdleConnections(), LOOK_EVERY_MS)
  await closed
  clearTimeout(late)
  clearInterval(idle)
}
