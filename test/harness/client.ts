import { createTransport } from 'nodemailer'
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
  message_count: number
  expires_at: string
  labels: Record<string, string>
}

export interface MessageJson {
  id: string
  subject: string | null
  sha256: string
  raw?: string
  raw_encoding?: string
}

export type Target = Pick<Mayfly, 'url' | 'smtpPort' | 'apiKey'>

export interface RequestOptions {
  body?: unknown
  headers?: Record<string, string>
}

/** One request with the target's key; the body is read as JSON where it is JSON. */
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
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const isJson = /json/.test(response.headers.get('content-type') ?? '')
  const read = isJson ? ((await response.json()) as Body) : ((await response.text()) as Body)
  return { status: response.status, headers: response.headers, body: read }
}

/** Makes an inbox; fails on any answer but 201. */
export async function createInbox(target: Target, body: unknown = {}): Promise<InboxJson> {
  const answer = await call<InboxJson>(target, 'POST', '/v1/inboxes', { body })
  if (answer.status !== 201) throw new Error(`no inbox: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

/** Sends a source as it is; resolves with the server's last line, rejects with its refusal. */
export async function send(target: Target, to: string | string[], raw: string | Buffer): Promise<string> {
  const transport = createTransport({ host: '127.0.0.1', port: target.smtpPort, ignoreTLS: true })
  try {
    const envelope = { from: 'sender@example.com', to }
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
