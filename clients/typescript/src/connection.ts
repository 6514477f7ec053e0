import { ApiError, MayflyError, UnreachableError, type Problem } from './errors.js'
import { splitOptions, type CallOptions } from './options.js'

/** @internal */
export interface ConnectionOptions {
  /** Without a slash at its end. */
  url: string
  apiKey: string
  /** Milliseconds for a call, retries included. */
  timeoutMs: number
  /** Used instead of the global `fetch`. */
  fetch: typeof fetch
}

/** `labels` is an object. */
type Query = Readonly<Record<string, unknown>>

interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  query?: Query
  body?: object
  headers?: Readonly<Record<string, string>>
}

/** Attempts of a request whose connection breaks. */
const MAX_CONNECTION_ATTEMPTS = 4
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2_000
/** Lines of a body are sent together. */
const PIECE_CHARACTERS = 64 * 1024
/** The longest time of a timer. It fires at once if it has more. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * HTTP requests to the API, with retries. Methods reject with ApiError, UnreachableError, or the signal's reason.
 * @internal
 */
export class Connection {
  readonly timeoutMs: number
  readonly #url: string
  readonly #apiKey: string
  readonly #fetch: typeof fetch

  constructor({ url, apiKey, timeoutMs, fetch }: ConnectionOptions) {
    this.#url = url
    this.#apiKey = apiKey
    // As a method of this object, a browser's fetch would throw "Illegal invocation".
    this.#fetch = (input, init) => fetch(input, init)
    this.timeoutMs = timeoutMs
  }

  /** A GET whose other options are its query. */
  get<Body>(path: string, options: object = {}): Promise<Body> {
    const [call, query] = splitOptions(options)
    return this.send({ method: 'GET', path, query }, call, readJson<Body>)
  }

  delete<Body>(path: string, options: CallOptions = {}): Promise<Body> {
    return this.send({ method: 'DELETE', path }, options, readJson<Body>)
  }

  /** A request whose other options are its body. */
  post<Body>(path: string, options: object = {}, method: 'POST' | 'PATCH' | 'PUT' = 'POST'): Promise<Body> {
    const [call, body] = splitOptions(options)
    return this.send({ method, path, body }, call, readJson<Body>)
  }

  bytes(path: string, options: object = {}): Promise<Uint8Array> {
    const [call, query] = splitOptions(options)
    return this.send(
      { method: 'GET', path, query },
      call,
      async (response) => new Uint8Array(await response.arrayBuffer()),
    )
  }

  /**
   * The bytes of an answer of any length, as they arrive; of a media type, if one is given. The time of the call and
   * its signal end with the answer's headers.
   */
  stream(path: string, options: object = {}, mediaType = ''): Promise<ReadableStream<Uint8Array>> {
    const [call, query] = splitOptions(options)
    const headers: Record<string, string> = mediaType === '' ? {} : { accept: mediaType }
    return this.send({ method: 'GET', path, query, headers }, call, async (response) => {
      const isExpected = response.headers.get('content-type')?.startsWith(mediaType) ?? mediaType === ''
      if (response.body === null || !isExpected) throw foreignAnswer(response, await response.text())
      return response.body
    })
  }

  /**
   * Sends lines of JSON with a POST, as they are made, and returns the bytes of the answer as they arrive. It is not
   * repeated: the lines are there only once. The time of the call and its signal end with the answer's headers. If a line
   * can't be made, rejects with that error.
   */
  async exchange(
    path: string,
    lines: Iterable<object> | AsyncIterable<object>,
    options: object = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const [call, query] = splitOptions(options)
    const { timeoutMs = this.timeoutMs, signal } = call
    const headers = { 'content-type': 'application/x-ndjson' }
    const [url, init] = this.#prepare({ method: 'POST', path, query, headers }, call)
    // Types of browsers lack `duplex`.
    const errors: unknown[] = []
    const body = streamOf(lines, (error) => errors.push(error))
    const streamed: RequestInit & { duplex: 'half' } = { ...init, body, duplex: 'half' }
    try {
      return await this.#attempt([url, streamed], { signal, leftMs: timeoutMs, timeoutMs }, (response) =>
        response.body === null ? Promise.reject(foreignAnswer(response, '')) : Promise.resolve(response.body),
      )
    } catch (error) {
      if (errors.length > 0) throw errors[0]
      if (signal?.aborted === true || error instanceof MayflyError) throw error
      if (error instanceof RetryableError) throw error.failure
      throw new UnreachableError(this.#url, reasonOf(error), false, error)
    }
  }

  /** The items of a list, from as many pages as needed; at most `limit`, if it is given. */
  async list<Item>(path: string, options: object = {}, maxPageItems?: number): Promise<Item[]> {
    const items: Item[] = []
    for await (const page of this.pages<Item>(path, options, maxPageItems)) items.push(...page)
    return items
  }

  /** The items of a list, page by page, as they are asked for. */
  async *pages<Item>(
    path: string,
    options: object = {},
    maxPageItems = MAX_PAGE_ITEMS,
  ): AsyncGenerator<Item[], void> {
    const [call, { limit = Infinity, ...filters }] = splitOptions(options)
    let left = Number(limit)
    let query: Record<string, unknown> = filters
    while (left > 0) {
      query = { ...query, limit: Math.min(left, maxPageItems) }
      const { page, next } = await this.send({ method: 'GET', path, query }, call, async (response) => ({
        page: await readJson<Item[]>(response),
        next: nextCursor(response),
      }))
      yield page
      left -= page.length
      if (next === null) break
      query = { ...query, cursor: next }
    }
  }

  /**
   * Sends a request until it is answered, and reads the answer. Tries again, within the time of the call, if the
   * connection breaks, and if the server is busy or the key is over its limit. A repeated POST has the same
   * idempotency key, so nothing is done twice.
   */
  async send<Result>(
    request: Request,
    call: CallOptions,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const { timeoutMs = this.timeoutMs, signal } = call
    const deadline = performance.now() + timeoutMs
    const prepared = this.#prepare(request, call)
    let broken = 0
    let refusal: MayflyError | undefined
    for (let attempt = 0; ; attempt += 1) {
      signal?.throwIfAborted()
      let pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS) * (0.5 + Math.random() / 2)
      let failure: MayflyError
      try {
        const leftMs = deadline - performance.now()
        return await this.#attempt(prepared, { signal, leftMs, timeoutMs }, read)
      } catch (error) {
        if (signal?.aborted === true) throw error
        if (error instanceof RetryableError) {
          failure = refusal = error.failure
          pauseMs = error.retryAfterMs ?? pauseMs
        } else if (error instanceof MayflyError) {
          // A refusal says more than that the time ended during the attempt after it.
          throw error instanceof UnreachableError ? (refusal ?? error) : error
        } else {
          broken += 1
          failure = new UnreachableError(this.#url, reasonOf(error), false, error)
          if (broken >= MAX_CONNECTION_ATTEMPTS) throw failure
        }
      }
      if (performance.now() + pauseMs >= deadline) throw failure
      await pause(pauseMs, signal)
    }
  }

  #prepare(
    { method, path, query = {}, body, headers = {} }: Request,
    call: CallOptions,
  ): [string, RequestInit] {
    if (/\/\.{0,2}(\/|$)/.test(path)) throw new MayflyError(`An id in ${path} is empty, "." or "..".`)
    const all: Record<string, string> = { accept: '*/*', authorization: `Bearer ${this.#apiKey}`, ...headers }
    if (method === 'POST') all['idempotency-key'] = call.idempotencyKey ?? randomKey()
    if (body !== undefined) all['content-type'] = 'application/json'
    if (call.password !== undefined) all['mayfly-inbox-password'] = call.password
    const init: RequestInit = {
      method,
      // Throws TypeError if a password or an idempotency key can't be in a header.
      headers: new Headers(all),
      // The key is sent only to the given URL.
      redirect: 'manual',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    return [`${this.#url}${path}${queryText(query)}`, init]
  }

  /** One attempt. Rejects with RetryableError if the answer allows another one. */
  async #attempt<Result>(
    [url, init]: [string, RequestInit],
    { signal, leftMs, timeoutMs }: { signal: AbortSignal | undefined; leftMs: number; timeoutMs: number },
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    // AbortSignal.any needs Node 20.
    const aborter = new AbortController()
    const abort = () => aborter.abort(signal?.reason)
    signal?.addEventListener('abort', abort)
    const late = new UnreachableError(this.#url, `no answer within ${timeoutMs} ms`, true)
    const timer = setTimeout(() => aborter.abort(late), Math.min(leftMs, MAX_TIMER_MS))
    try {
      const response = await this.#fetch(url, { ...init, signal: aborter.signal })
      if (response.ok) return await read(response)
      throw await refused(response)
    } catch (error) {
      throw aborter.signal.aborted ? aborter.signal.reason : error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }
}

/** The largest page that every list of the API allows. */
const MAX_PAGE_ITEMS = 100

/** An answer after which the request may be sent again. */
class RetryableError extends Error {
  constructor(
    readonly failure: MayflyError,
    readonly retryAfterMs: number | undefined,
  ) {
    super(failure.message)
  }
}

/**
 * The JSON of an answer. Rejects with MayflyError if it is something else.
 * @internal
 */
export async function readJson<Body>(response: Response): Promise<Body> {
  const text = await response.text()
  try {
    return JSON.parse(text) as Body
  } catch {
    throw foreignAnswer(response, text)
  }
}

/**
 * The position in the inbox that comes with an answer. Throws MayflyError if there is none.
 * @internal
 */
export function cursorOf({ headers }: Response): string {
  const cursor = headers.get('mayfly-cursor')
  if (cursor === null) throw new MayflyError('The answer does not come from Mayfly: it has no Mayfly-Cursor.')
  return cursor
}

/**
 * The same, after reading the body: a connection is only used again once its answer has been read.
 * @internal
 */
export async function readCursor(response: Response): Promise<string> {
  await response.arrayBuffer()
  return cursorOf(response)
}

async function refused(response: Response): Promise<Error> {
  const { status, headers } = response
  const text = await response.text()
  const isProblem = /^application\/problem\+json\b/.test(headers.get('content-type') ?? '')
  const problem = isProblem ? parseProblem(text) : null
  const failure = problem === null ? foreignAnswer(response, text) : new ApiError(problem)
  const isInUse = problem?.code === 'idempotency-key-in-use'
  // A quota seldom gets free within the time of a call.
  if (problem?.code === 'quota-exceeded') return failure
  if (status !== 429 && status !== 503 && !isInUse) return failure
  return new RetryableError(failure, retryAfterMs(headers))
}

/** Null if it is not a problem of Mayfly's API. */
function parseProblem(text: string): Problem | null {
  try {
    const parsed = JSON.parse(text) as Partial<Problem> | null
    return parsed?.code === undefined || parsed.request_id === undefined ? null : (parsed as Problem)
  } catch {
    return null
  }
}

function foreignAnswer({ status, headers }: Response, text: string): MayflyError {
  const location = headers.get('location')
  const about = location === null ? text.slice(0, 200) : `it redirects to ${location}`
  return new MayflyError(`The answer ${status} does not come from Mayfly: ${about}`)
}

/** Milliseconds until another attempt, if the server sent a number of seconds or a date (RFC 9110, section 10.2.3). */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now()
  return ms > 0 ? ms : undefined
}

/** Objects as lines of JSON. `onError` gets what the iterator throws. */
function streamOf(
  objects: Iterable<object> | AsyncIterable<object>,
  onError: (error: unknown) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const iterator =
    Symbol.asyncIterator in objects ? objects[Symbol.asyncIterator]() : objects[Symbol.iterator]()
  return new ReadableStream({
    async pull(controller) {
      let piece = ''
      let isDone = false
      try {
        while (!isDone && piece.length < PIECE_CHARACTERS) {
          const next: IteratorResult<object> = await iterator.next()
          isDone = next.done === true
          if (!isDone) piece += `${JSON.stringify(next.value)}\n`
        }
      } catch (error) {
        onError(error)
        throw error
      }
      controller.enqueue(encoder.encode(piece))
      if (isDone) controller.close()
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}

function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (name === 'labels') {
      for (const pair of Object.entries(value as object)) parameters.append('label', pair.join(':'))
    } else for (const each of [value].flat()) parameters.append(name, plainText(name, each))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** Throws MayflyError for an object, such as a RegExp, which would otherwise be sent as some text. */
function plainText(name: string, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  throw new MayflyError(`The option ${name} must be a text, a number or a boolean.`)
}

function nextCursor({ headers }: Response): string | null {
  const target = /^<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  return target === undefined ? null : new URL(target, 'http://any').searchParams.get('cursor')
}

/** In Jest, errors of `fetch` are not instances of the test's classes. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown }
  // The message is empty if several addresses were tried.
  const { errors: [first] = [cause] } = cause as { errors?: unknown[] }
  return String((first as Partial<Error>).message ?? first)
}

/** Browsers have it on secure pages only, Node since version 19. */
function randomKey(): string {
  const digits = () => Math.random().toString(36).slice(2)
  return (
    (globalThis.crypto as Partial<typeof globalThis.crypto> | undefined)?.randomUUID?.() ??
    digits() + digits()
  )
}

/**
 * Resolves after the time. Rejects with the signal's reason if that comes first.
 * @internal
 */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(ms, MAX_TIMER_MS),
    )
    signal?.addEventListener('abort', abort, { once: true })
  })
}
