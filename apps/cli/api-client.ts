import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '#libs/runtime/fault/message-of.js'
import { EXIT, Failure, failureOf, type ProblemJson } from './failure.js'

export interface ApiOptions {
  /** Where the API is. */
  url: string
  key: string
}

export interface Asked {
  query?: Readonly<Record<string, string | readonly string[] | undefined>>
  body?: object
  password?: string | undefined
  /** How long an answer may take, with every repeat; longer where it is one that is waited for. */
  timeoutMs?: number
  /** In place of that: aborts what is under way. */
  signal?: AbortSignal
}

interface Sending {
  idempotencyKey: string | null
  signal: AbortSignal
}

const TIMEOUT_MS = 30_000
const MAX_ATTEMPTS = 3
const MAX_PAUSE_MS = 5_000

/** The HTTP API as the commands use it. Every method rejects with Failure where it does not get what it asks for. */
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

  /** May be repeated unseen: the API then answers as the first time, with the same secrets. */
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
   * The bytes of an answer of any length, as they come; the signal ends it, and fetch itself after five minutes without
   * any. Reading them rejects with Failure where they break off.
   */
  async stream(path: string, asked: Asked & { signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>> {
    return read(await this.ask('GET', path, asked))
  }

  /** The first so many items of a list, from as many pages as they take. */
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
        // The key goes nowhere but where it was said to.
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

/** What an answer holds. */
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
  // Of several addresses that were tried, the message is empty.
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
  return new Failure(EXIT.unavailable, `no answer from ${url}: ${messageOf(first)}`)
}

/** What can stand in a header. */
function requireVisibleCharacters(what: string, text: string): void {
  if (!/^[\x21-\x7e]+$/.test(text))
    throw new Failure(EXIT.usage, `${what} is not of visible ASCII characters`)
}

function nextCursor({ headers }: Response): string | null {
  const [, target = null] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? []
  return target === null ? null : new URL(target, 'http://any').searchParams.get('cursor')
}
