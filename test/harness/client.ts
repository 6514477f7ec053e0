import { createTransport } from 'nodemailer'
import type { Schemas } from '#clients/typescript/src/options.js'
import { checkAnswer } from './contract.js'
import type { Mayfly } from './mayfly.js'
import { until } from './until.js'

export interface Answer<Body> {
  status: number
  headers: Headers
  body: Body
}

/* The JSON of the API, by the schemas of its OpenAPI document. */

export type InboxJson = Schemas['Inbox']
export type DomainJson = Schemas['Domain']
export type MessageJson = Schemas['Message'] & { raw?: string; raw_encoding?: string }
export type ProblemJson = Schemas['Problem']

export type Target = Pick<Mayfly, 'url' | 'smtpPort' | 'apiKey'>

export interface RequestOptions {
  body?: unknown
  headers?: Record<string, string>
}

/**
 * Sends one request with the target's key, unless `headers` override it, and parses the answer if it is JSON. Throws
 * ContractError if the target's OpenAPI document does not allow the answer.
 */
export async function call<Body = unknown>(
  target: Target,
  method: string,
  path: string,
  { body, headers }: RequestOptions = {},
): Promise<Answer<Body>> {
  const response = await fetch(target.url + path, {
    method,
    headers: {
      authorization: `Bearer ${target.apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: bodyOf(body) }),
  })
  const isJson = method !== 'HEAD' && /[/+]json\b/.test(response.headers.get('content-type') ?? '')
  const read = isJson ? ((await response.json()) as Body) : ((await response.text()) as Body)
  const { status, headers: answered } = response
  await checkAnswer(target.url, { method, path, status, headers: answered, body: read })
  return { status, headers: answered, body: read }
}

/** Strings and bytes are sent unchanged, everything else as JSON. */
function bodyOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}

/** An answer of the API with an unexpected status. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError'

  constructor(
    what: string,
    readonly status: number,
    body: unknown,
  ) {
    super(`${what}: ${status} ${JSON.stringify(body)}`)
  }
}

/** Creates what a POST to the path creates. Repeats it while the views lag behind; rejects if it fails otherwise. */
export async function create<Body>(
  target: Target,
  path: string,
  body: unknown,
  options: Pick<RequestOptions, 'headers'> = {},
): Promise<Body> {
  return until('the views to catch up', async () => {
    const answer = await call<Body & ProblemJson>(target, 'POST', path, { ...options, body })
    if (answer.status === 201) return answer.body
    if (answer.body.code === 'catching-up') return null
    throw new UnexpectedAnswerError(`POST ${path}`, answer.status, answer.body)
  })
}

export function createInbox(target: Target, body: unknown = {}): Promise<InboxJson> {
  return create(target, '/v1/inboxes', body)
}

/** Sends a raw source. Resolves with the server's last line, rejects with its refusal. */
export async function send(
  target: Target,
  to: string | string[],
  raw: string | Buffer,
  from = 'sender@example.com',
): Promise<string> {
  const transport = createTransport({ host: '127.0.0.1', port: target.smtpPort, ignoreTLS: true })
  try {
    const envelope = { from, to }
    const { response } = await transport.sendMail({ envelope, raw })
    return response
  } finally {
    transport.close()
  }
}

/** Resolves with the inbox's messages once there are at least `count`. */
export async function messagesOf(
  target: Target,
  inboxId: string,
  count: number,
  withinMs?: number,
): Promise<MessageJson[]> {
  const look = async () => {
    const path = `/v1/inboxes/${inboxId}/messages?limit=100`
    const { status, body } = await call<MessageJson[]>(target, 'GET', path)
    return status === 200 && body.length >= count ? body : null
  }
  return until(`${count} messages in ${inboxId}`, look, withinMs)
}

/** A small mail with CRLF line endings. */
export function mail(subject: string, text = 'Hello.'): string {
  return [
    'From: App <app@example.com>',
    'To: someone@mayfly.test',
    `Subject: ${subject}`,
    'Content-Type: text/plain; charset=utf-8',
    '',
    text,
    '',
  ].join('\r\n')
}

/** Creates an inbox and sends it the sources, in order. Resolves once all are visible. */
export async function inboxWith(target: Target, ...sources: (string | Buffer)[]): Promise<InboxJson> {
  const inbox = await createInbox(target)
  for (const source of sources) await send(target, inbox.address, source)
  await messagesOf(target, inbox.id, sources.length)
  return inbox
}

/** The only item of a list; throws if there are none or several. */
export function only<Item>(items: readonly Item[]): Item {
  const [first, ...others] = items
  if (first === undefined || others.length > 0) throw new Error(`${items.length} items, not one`)
  return first
}

/** The path of the next page, from the `Link` header; null on the last page. */
export function nextOf({ headers }: Pick<Answer<unknown>, 'headers'>): string | null {
  const link = headers.get('link')
  if (link === null) return null
  const [, path = null] = /^<([^<>]+)>; rel="next"$/.exec(link) ?? []
  if (path === null) throw new Error(`not a link to a next page: ${link}`)
  return path
}

/** All pages of a list, starting at a path. Rejects with UnexpectedAnswerError if an answer is not 200. */
export async function pagesFrom<Item>(target: Target, path: string): Promise<Answer<Item[]>[]> {
  const pages: Answer<Item[]>[] = []
  for (let next: string | null = path; next !== null;) {
    const page: Answer<Item[]> = await call<Item[]>(target, 'GET', next)
    if (page.status !== 200) throw new UnexpectedAnswerError(next, page.status, page.body)
    pages.push(page)
    next = nextOf(page)
  }
  return pages
}
