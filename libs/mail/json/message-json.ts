import { domainToUnicode } from 'node:url'
import type Type from 'typebox'
import { object } from '#libs/domain/event-sourcing/declare.js'
import { brand, type InboxId, type MessageId } from '#libs/domain/ids/typeid.js'
import type { BodyKind } from '#libs/domain/inbox/events.js'
import type {
  DomainNotification,
  EventNotification,
  KeyNotification,
  QuotaNotification,
  WebhookEventType,
} from '#libs/domain/webhook/events.js'
import type { ResourceJson } from '#libs/runtime/resource.js'
import { EXAMPLE_MAIL, MESSAGE, type Authentication, type ParsedMail } from '../message.js'

/*
 * Messages and events as JSON: the message of the API, and the bodies that streams and webhooks send.
 */

/** A message from the views, decrypted. */
export interface OpenedMessage {
  id: MessageId
  inboxId: InboxId
  receivedAt: Date
  mail: ParsedMail
  /** Bytes of the mail as JSON. */
  bytes: number
}

export const EXAMPLE_MESSAGE: OpenedMessage = {
  id: brand('msg', 'msg_01jd6b90cxf2jb8yqv4t6m2n0p'),
  inboxId: brand('inb', 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk'),
  receivedAt: new Date('2026-11-21T09:30:02.417Z'),
  mail: EXAMPLE_MAIL,
  bytes: 0,
}

const UNVERIFIED: Authentication = { spf: null, dkim: [], dmarc: null }

/** Properties of a message that its envelope has. */
function inEnvelope({ envelope }: ParsedMail) {
  const { authentication = UNVERIFIED, injected, duplicateOf } = envelope
  return { authentication, injected, duplicateOf }
}

const message = object(MESSAGE)
/** Its schemas, by the names in JSON. */
export const MESSAGE_SCHEMAS: Readonly<Record<string, Type.TSchema>> = (message.schema as Type.TObject)
  .properties

/** A message as the API returns it, without its source. `basePath` is the path that `raw_url` begins with. */
export function messageJson(
  { id, inboxId, receivedAt, mail }: OpenedMessage,
  basePath: string,
): ResourceJson {
  const rawUrl = `${basePath}/${inboxId}/messages/${id}/raw`
  return message.encode({ ...mail, ...inEnvelope(mail), id, inboxId, receivedAt, rawUrl }) as ResourceJson
}

const MAX_BODY_BYTES = 256_000
/** The properties that are removed from a message, in this order, while its body is too long. */
export const TRUNCATED_PROPERTIES = ['html', 'visible_text', 'text', 'headers'] as const

/** The body of `message.received`. Removed properties are null, and listed in `truncated`. */
export function messageBody(time: Date, message: OpenedMessage, basePath: string): string {
  let data: Record<string, unknown> = messageJson(message, basePath)
  let body = bodyText('message.received', time, data)
  const truncated: string[] = []
  for (const name of TRUNCATED_PROPERTIES) {
    if (Buffer.byteLength(body) <= MAX_BODY_BYTES) break
    if (data[name] === null) continue
    truncated.push(name)
    data = { ...data, [name]: null, truncated }
    body = bodyText('message.received', time, data)
  }
  return body
}

/** The body of an event without mail. */
export function bodyWithoutMail(
  kind: Exclude<BodyKind, 'message'>,
  { type, inboxId, messageId, occurredAt: time }: EventNotification,
): string {
  switch (kind) {
    case 'deleted-message':
      return bodyText(type, time, { id: messageId, inbox_id: inboxId, deleted_at: time.toISOString() })
    case 'ended-inbox': {
      const [, state] = type.split('.')
      return bodyText(type, time, { id: inboxId, state, ended_at: time.toISOString() })
    }
  }
}

/** The body of a change of a domain. */
export function domainBody(
  { type, domainId: id, name, occurredAt: time }: DomainNotification,
  environment: string,
): string {
  const [, state] = type.split('.')
  return bodyText(type, time, { id, name: domainToUnicode(name), environment, state })
}

export function keyBody(
  { type, keyId: id, name, expiresAt, occurredAt: time }: KeyNotification,
  environment: string,
): string {
  return bodyText(type, time, { id, name, environment, expires_at: expiresAt.toISOString() })
}

export function quotaBody(notification: QuotaNotification): string {
  const { type, quota: name, scope, percent, limit, used, resetsAt, occurredAt: time } = notification
  const owner = { environment: scope.environment, key_id: scope.keyId }
  const resets_at = resetsAt?.toISOString() ?? null
  return bodyText(type, time, { name, ...owner, percent, limit, used, resets_at })
}

/** An event as JSON: its name, its time and its data. */
function bodyText(type: WebhookEventType, time: Date, data: object): string {
  return JSON.stringify({ type, timestamp: time.toISOString(), data })
}
