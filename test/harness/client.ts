import { createTransport } from 'nodemailer'
import { checkAnswer } from './contract.js'
import type { Mayfly } from './mayfly.js'
import { until } from './until.js'

export interface Answer<Body> {
  status: number
  headers: Headers
  body: Body
}

export interface InboxJson {
  id: string
  address: string
  state: string
  duration: string
  created_at: string
  expires_at: string
  message_count: number
  last_message_at: string | null
  labels: Record<string, string>
}

export interface MessageJson {
  id: string
  received_at: string
  subject: string | null
  text: string | null
  html: string | null
  visible_text: string | null
  size: number
  sha256: string
  raw_url: string
  attachments: { index: number; filename: string | null; content_type: string }[]
  authentication: { spf: object | null; dkim: object[]; dmarc: object | null }
  raw?: string
  raw_encoding?: string
}

export interface ProblemJson {
  type: string
  title: string
  status: number
  detail: string
  code: string
  fix: string
  request_id: string
  ended_at?: string
  ended_by?: string | null
  errors?: { detail: string; pointer?: string; parameter?: string; header?: string }[]
}

export type Target = Pick<Mayfly, 'url' | 'smtpPort' | 'apiKey'>

export interface RequestOptions {
  body?: unknown
  headers?: Record<string, string>
}

/**
 * One request with the target's key, unless the headers say otherwise; the answer is read as JSON where it is JSON.
 * Throws if the target's own OpenAPI document does not allow that answer.
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

/** Text and bytes as they are, anything else as JSON. */
function bodyOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body
  return body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
}

/** An answer of the API that was not the one asked for. */
export class OtherAnswerError extends Error {
  override readonly name = 'OtherAnswerError'

  constructor(
    what: string,
    readonly status: number,
    body: unknown,
  ) {
    super(`${what}: ${status} ${JSON.stringify(body)}`)
  }
}

/** Makes an inbox; fails on any answer but 201. */
export async function createInbox(target: Target, body: unknown = {}): Promise<InboxJson> {
  const answer = await call<InboxJson>(target, 'POST', '/v1/inboxes', { body })
  if (answer.status !== 201) throw new OtherAnswerError('no inbox', answer.status, answer.body)
  return answer.body
}

/** Sends a source as it is; resolves with the server's last line, rejects with its refusal. */
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

/** The inbox's messages, once there are as many. */
export async function messagesOf(target: Target, inboxId: string, count: number): Promise<MessageJson[]> {
  return until(`${count} messages in ${inboxId}`, async () => {
    const path = `/v1/inboxes/${inboxId}/messages?limit=100`
    const { status, body } = await call<MessageJson[]>(target, 'GET', path)
    return status === 200 && body.length >= count ? body : null
  })
}

/** A small mail with CRLF line ends. */
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

/** Makes an inbox with a mail in it for each source, in their order. */
export async function inboxWith(target: Target, ...sources: (string | Buffer)[]): Promise<InboxJson> {
  const inbox = await createInbox(target)
  for (const source of sources) await send(target, inbox.address, source)
  await messagesOf(target, inbox.id, sources.length)
  return inbox
}

/** The only one of a list; fails if there are none or several. */
export function only<Item>(items: readonly Item[]): Item {
  const [first, ...others] = items
  if (first === undefined || others.length > 0) throw new Error(`${items.length} items, not one`)
  return first
}

/** Where a list goes on, as its `Link` says; null at its end. */
export function nextOf({ headers }: Pick<Answer<unknown>, 'headers'>): string | null {
  const link = headers.get('link')
  if (link === null) return null
  const [, path = null] = /^<([^<>]+)>; rel="next"$/.exec(link) ?? []
  if (path === null) throw new Error(`not a link to a next page: ${link}`)
  return path
}

/** What was answered instead of a page. */
export class NoPageError extends Error {
  override readonly name = 'NoPageError'

  constructor(
    path: string,
    readonly status: number,
    body: unknown,
  ) {
    super(`${path}: ${status} ${JSON.stringify(body)}`)
  }
}

/** Every page of a list from a path on; rejects with NoPageError if there is another answer. */
export async function pagesFrom<Item>(target: Target, path: string): Promise<Answer<Item[]>[]> {
  const pages: Answer<Item[]>[] = []
  for (let next: string | null = path; next !== null;) {
    const page: Answer<Item[]> = await call<Item[]>(target, 'GET', next)
    if (page.status !== 200) throw new NoPageError(next, page.status, page.body)
    pages.push(page)
    next = nextOf(page)
  }
  return pages
}
