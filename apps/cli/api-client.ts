import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '#libs/runtime/errors.js'
import { EXIT, Failure, failureOf, type ProblemJson } from './failure.js'

export interface RequestOptions {
  query?: Readonly<Record<string, string | readonly string[] | undefined>>
  body?: object
  /** Makes a body of lines, which is sent as they are made; again for each attempt. */
  lines?: () => AsyncIterable<string>
  password?: string | undefined
  /** Maximum time for an answer, including retries; longer for a request that waits. */
  timeoutMs?: number
  /** Used instead of the timeout: aborts the request. */
  signal?: AbortSignal
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

const TIMEOUT_MS = 30_000
const EXCHANGE_TIMEOUT_MS = 15 * 60_000
const MAX_ATTEMPTS = 3
const MAX_PAUSE_MS = 5_000
const PIECE_CHARACTERS = 64 * 1024

/** The HTTP API as the commands use it. Every method rejects with Failure if the request fails. */
export class ApiClient {
  private readonly base: string

  constructor(
    readonly url: string,
    readonly key: string,
  ) {
    const parsed = URL.parse(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new Failure(EXIT.usage, `not an http or https URL: ${url}`)
    }
    requireVisibleCharacters('the key', key)
    this.base = parsed.href.replace(/\/+$/, '')
  }

  /** A POST is safe to retry: a repeat gets the first answer, with the same secrets. */
  async call<Body>(method: Method, path: string, options: RequestOptions = {}): Promise<Body> {
    return readJson<Body>(await this.send(method, path, options))
  }

  async bytes(path: string, options: RequestOptions = {}): Promise<Uint8Array> {
    const response = await this.send('GET', path, options)
    return readWhole(response.bytes())
  }

  /**
   * The bytes of an answer of any length, as they arrive. The signal aborts it, and fetch does after five minutes
   * without a byte. Reading rejects with Failure if the answer is incomplete.
   */
  async stream(
    path: string,
    options: RequestOptions & { signal: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array>> {
    return read(await this.send('GET', path, options))
  }

  /**
   * Sends lines with a POST, and returns the bytes of the answer as they arrive. Rejects with the Failure of a line that
   * can't be made, and as `stream` does.
   */
  async exchange(
    path: string,
    options: Pick<RequestOptions, 'query'> & Required<Pick<RequestOptions, 'lines'>>,
  ): Promise<AsyncIterable<Uint8Array>> {
    return read(await this.send('POST', path, { ...options, timeoutMs: EXCHANGE_TIMEOUT_MS }))
  }

  /** The first `max` items of a list, from as many pages as needed, each of at most `pageSize` items. */
  async list<Item>(path: string, max: number, options: RequestOptions = {}, pageSize = 100): Promise<Item[]> {
    const items: Item[] = []
    let query: RequestOptions['query'] = { ...options.query, limit: String(Math.min(max, pageSize)) }
    for (;;) {
      const response = await this.send('GET', path, { ...options, query })
      items.push(...(await readJson<Item[]>(response)))
      const cursor = nextCursor(response)
      if (cursor === null || items.length >= max) return items.slice(0, max)
      query = { ...query, cursor }
    }
  }

  private async send(method: Method, path: string, options: RequestOptions): Promise<Response> {
    const { query = {}, body, lines, password, timeoutMs = TIMEOUT_MS } = options
    const authorization = `Bearer ${this.key}`
    const headers = new Headers({ accept: '*/*', 'user-agent': 'mayfly-cli', authorization })
    if (method === 'POST') headers.set('idempotency-key', randomUUID())
    if (body !== undefined) headers.set('content-type', 'application/json')
    if (lines !== undefined) headers.set('content-type', 'application/x-ndjson')
    if (password !== undefined) {
      requireVisibleCharacters('the password', password)
      headers.set('mayfly-inbox-password', password)
    }
    const signal = options.signal ?? AbortSignal.timeout(timeoutMs)
    const text = body === undefined ? null : JSON.stringify(body)
    // The key is sent only to the given URL.
    const request: RequestInit = { method, headers, body: text, redirect: 'error', signal }
    const url = this.base + path + queryText(query)
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.orFailure(fetch(url, { ...request, ...streamed(lines) }))
      if (response.ok) return response
      const retryAfterMs = Number(response.headers.get('retry-after') ?? NaN) * 1_000
      const mayRetry = response.status === 503 && attempt < MAX_ATTEMPTS && retryAfterMs <= MAX_PAUSE_MS
      if (!mayRetry) throw failureOf(response.status, await readProblem(response))
      await response.body?.cancel()
      await this.orFailure(pause(retryAfterMs, undefined, { signal }))
    }
  }

  private async orFailure<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error
      if (cause instanceof Failure) throw cause
      // The message is empty if several addresses were tried.
      const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
      throw new Failure(
        EXIT.unavailable,
        `no answer from ${this.base}: ${messageOf(first)}. Start Mayfly, or set MAYFLY_URL to its address.`,
      )
    }
  }
}

/** The body of a request that is sent as it is made. */
function streamed(lines: RequestOptions['lines']): RequestInit {
  if (lines === undefined) return {}
  return { body: ReadableStream.from(encoded(lines())), duplex: 'half' }
}

/** The lines in larger pieces, as bytes. */
async function* encoded(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  let piece = ''
  for await (const line of lines) {
    piece += line
    if (piece.length < PIECE_CHARACTERS) continue
    yield Buffer.from(piece)
    piece = ''
  }
  if (piece !== '') yield Buffer.from(piece)
}

function queryText(query: NonNullable<RequestOptions['query']>): string {
  const parameters = new URLSearchParams()
  for (const [name, values = []] of Object.entries(query)) {
    for (const value of [values].flat()) parameters.append(name, value)
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`
}

function readJson<Body>(response: Response): Promise<Body> {
  return readWhole(response.json() as Promise<Body>)
}

async function* read({ body }: Response): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (error) {
    throw unreadable(error)
  }
}

async function readWhole<Content>(content: Promise<Content>): Promise<Content> {
  try {
    return await content
  } catch (error) {
    throw unreadable(error)
  }
}

function unreadable(error: unknown): Failure {
  return new Failure(EXIT.failed, `the answer can't be read: ${messageOf(error)}`)
}

async function readProblem(response: Response): Promise<ProblemJson | null> {
  if (!/^application\/problem\+json\b/.test(response.headers.get('content-type') ?? '')) return null
  return readJson<ProblemJson>(response)
}

/** Checks that the text is valid in a header. */
function requireVisibleCharacters(what: string, text: string): void {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new Failure(EXIT.usage, `${what} must consist of visible ASCII characters`)
}

function nextCursor({ headers }: Response): string | null {
  const [, target = null] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? []
  return target === null ? null : new URL(target, 'http://any').searchParams.get('cursor')
}

/** What commands use. The client is created when a command runs, so that help and usage errors require no key. */
export interface Session {
  api(): ApiClient
  /** Prints the result of a command once it is settled: as JSON with --json, otherwise as text. */
  print<Result>(result: Result | Promise<Result>, toText: (result: Result) => string): Promise<void>
  /** Prints bytes or text unchanged, and nothing else. */
  write(content: Uint8Array | string): void
  /** The same for a stream, with backpressure. */
  writeAll(content: AsyncIterable<Uint8Array>): Promise<void>
  /** Whether the output is a terminal. */
  readonly isTerminal: boolean
}
