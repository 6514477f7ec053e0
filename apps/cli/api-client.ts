import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '#libs/runtime/errors.js'
import { EXIT, Failure, failureOf, type ProblemJson } from './failure.js'

export interface ApiOptions {
  /** URL of the API. */
  url: string
  key: string
}

export interface Asked {
  query?: Readonly<Record<string, string | readonly string[] | undefined>>
  body?: object
  password?: string | undefined
  /** Maximum time for an answer, including retries; longer for a request that waits. */
  timeoutMs?: number
  /** Used instead of the timeout: aborts the request. */
  signal?: AbortSignal
}

interface Sending {
  idempotencyKey: string | null
  signal: AbortSignal
}

const TIMEOUT_MS = 30_000
const MAX_ATTEMPTS = 3
const MAX_PAUSE_MS = 5_000

/** The HTTP API as the commands use it. Every method rejects with Failure if the request fails. */
export class ApiClient {
  private readonly base: string

  constructor(private readonly options: ApiOptions) {
    const url = URL.parse(options.url)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      throw new Failure(EXIT.usage, `not an http or https URL: ${options.url}`)
    }
    requireVisibleCharacters('the key', options.key)
    this.base = url.href.replace(/\/+$/, '')
  }

  async get<Body>(path: string, asked: Asked = {}): Promise<Body> {
    return readJson<Body>(await this.ask('GET', path, asked))
  }

  /** Safe to retry: a repeat gets the first answer, with the same secrets. */
  async post<Body>(path: string, asked: Asked = {}): Promise<Body> {
    return readJson<Body>(await this.ask('POST', path, { ...asked, body: asked.body ?? {} }))
  }

  async patch<Body>(path: string, asked: Asked): Promise<Body> {
    return readJson<Body>(await this.ask('PATCH', path, asked))
  }

  async delete<Body>(path: string, asked: Asked = {}): Promise<Body> {
    return readJson<Body>(await this.ask('DELETE', path, asked))
  }

  async bytes(path: string, asked: Asked = {}): Promise<Uint8Array> {
    const response = await this.ask('GET', path, asked)
    return wholly(response.bytes())
  }

  /**
   * The bytes of an answer of any length, as they arrive. The signal ends it, and so does fetch after five minutes
   * without any. Reading rejects with Failure if the answer is cut off.
   */
  async stream(path: string, asked: Asked & { signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>> {
    return read(await this.ask('GET', path, asked))
  }

  /** The first `most` items of a list, from as many pages as needed. */
  async list<Item>(path: string, { most, pageSize }: { most: number; pageSize: number }, asked: Asked = {}) {
    const items: Item[] = []
    let query: Asked['query'] = { ...asked.query, limit: String(Math.min(most, pageSize)) }
    for (;;) {
      const response = await this.ask('GET', path, { ...asked, query })
      items.push(...(await readJson<Item[]>(response)))
      const cursor = nextCursor(response)
      if (cursor === null || items.length >= most) return items.slice(0, most)
      query = { ...query, cursor }
    }
  }

  private async ask(method: string, path: string, asked: Asked): Promise<Response> {
    const signal = asked.signal ?? AbortSignal.timeout(asked.timeoutMs ?? TIMEOUT_MS)
    const idempotencyKey = method === 'POST' ? randomUUID() : null
    for (let attempt = 1; ; attempt += 1) {
      const response = await this.send(method, path, asked, { idempotencyKey, signal })
      if (response.ok) return response
      const retryAfterMs = Number(response.headers.get('retry-after') ?? NaN) * 1_000
      const isWorthwhile = response.status === 503 && attempt < MAX_ATTEMPTS && retryAfterMs <= MAX_PAUSE_MS
      if (!isWorthwhile) throw failureOf(response.status, await readProblem(response))
      await response.body?.cancel()
      await pause(retryAfterMs, undefined, { signal }).catch((error: unknown) => {
        throw unanswered(this.base, error)
      })
    }
  }

  private async send(
    method: string,
    path: string,
    { query = {}, body, password }: Asked,
    { idempotencyKey, signal }: Sending,
  ): Promise<Response> {
    if (password !== undefined) requireVisibleCharacters('the password', password)
    const pairs = Object.entries(query).flatMap(([name, value]) =>
      [value ?? []].flat().map((each) => [name, each] as [string, string]),
    )
    const text = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
    try {
      return await fetch(this.base + path + text, {
        method,
        headers: {
          accept: '*/*',
          'user-agent': 'mayfly-cli',
          authorization: `Bearer ${this.options.key}`,
          ...(password === undefined ? {} : { 'mayfly-inbox-password': password }),
          ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        // The key is sent only to the given URL.
        redirect: 'error',
        signal,
      })
    } catch (error) {
      throw unanswered(this.base, error)
    }
  }
}

function readJson<Body>(response: Response): Promise<Body> {
  return wholly(response.json() as Promise<Body>)
}

async function* read({ body }: Response): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch (error) {
    throw unreadable(error)
  }
}

/** The JSON of an answer. */
async function wholly<Content>(content: Promise<Content>): Promise<Content> {
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

function unanswered(url: string, error: unknown): Failure {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  // The message is empty if several addresses were tried.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
  return new Failure(EXIT.unavailable, `no answer from ${url}: ${messageOf(first)}`)
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

/** Used by commands. Created when one runs, so that help and errors of the command line need no key. */
export interface Session {
  api(): ApiClient
  /** Prints the result of a command: as JSON with --json, otherwise as text for people. */
  print(result: unknown, inWords: () => string): void
  /** Prints bytes or text unchanged, and nothing else. */
  write(content: Uint8Array | string): void
  /** The same for a stream, with backpressure. */
  writeAll(content: AsyncIterable<Uint8Array>): Promise<void>
  /** Whether the output is a terminal. */
  readonly isTerminal: boolean
}
