import Type from 'typebox'
import { event, type EventOf } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'

/** Requests that one event may count for. Each of them is a row in ClickHouse. */
export const MAX_SHARED = 100

/** Labels of the inbox that an event is about; empty if it is about no inbox. */
export type UsageLabels = Readonly<Record<string, string>>

/** An event about a message. */
const message = {
  /** The key that created the inbox. */
  keyId: field.id('key'),
  inboxId: field.id('inb'),
  messageId: field.id('msg'),
  labels: field.labels,
}

/**
 * Events that exist only to be counted and timed: nothing else depends on them. Inboxes and received mail are counted
 * from the events of inboxes.
 */
const COUNTED = {
  /**
   * A request was answered, or its client disconnected. Requests of one key that are refused within half a second share
   * an event: its times and bytes are then the mean per request.
   */
  ApiRequestServed: event('usage.api-request-served', {
    /** The key of the request. */
    keyId: field.id('key'),
    method: field.text,
    /** The path's template, so that there are only a few. */
    route: field.text,
    /** The HTTP status; 499 if the client disconnected before it had the whole answer. */
    status: field.plain(Type.Integer({ minimum: 100, maximum: 599 })),
    /** Whether it exceeded the key's limits and was answered 429. */
    isRefused: field.named('refused', field.boolean),
    /** How many requests the event counts for. */
    count: field.optional(field.plain(Type.Integer({ minimum: 2, maximum: MAX_SHARED })), 1),
    /** From the first byte of the request's header to the last byte of the answer, with fractions. */
    durationMs: field.milliseconds,
    /** The size of the request's body. */
    requestBytes: field.count,
    /** All bytes that were sent on the connection meanwhile. */
    responseBytes: field.count,
    inboxId: field.optional(field.id('inb'), null),
    labels: field.labels,
    servedAt: field.time,
  }),

  /** One recipient's copy of a mail is durable; the reply 250 follows. */
  MailAccepted: event('usage.mail-accepted', {
    ...message,
    /** Bytes of the mail's source. */
    size: field.count,
    /** From the last byte of the mail until it was durable. */
    acceptMs: field.milliseconds,
    /**
     * The same for mails of one inbox with the same Message-ID, and for no others: 16 hex digits that reveal nothing
     * without the inbox's key. Null if a mail has no Message-ID.
     */
    fingerprint: field.optional(field.plain(Type.String({ pattern: '^[0-9a-f]{16}$' })), null),
    /** The message that this one repeats on purpose: the mail was accepted only once. */
    duplicateOf: field.optional(field.id('msg'), null),
    acceptedAt: field.time,
  }),

  /**
   * Mail to a known inbox was refused: the inbox has ended or is full, the mail is unacceptable, or Mayfly could not
   * accept it at that time (451), so that the sender tries again. It was refused at RCPT TO, at DATA or after it.
   */
  MailRefused: event('usage.mail-refused', {
    /** The key that created the inbox. */
    keyId: field.id('key'),
    inboxId: field.id('inb'),
    labels: field.labels,
    /** One of a few words. */
    reason: field.text,
    /** The reply's code (RFC 5321, section 4.2). */
    code: field.plain(Type.Integer({ minimum: 400, maximum: 599 })),
    refusedAt: field.time,
  }),

  /** A message is in the views: parsed, and readable over the API. */
  MessageShown: event('usage.message-shown', { ...message, receivedAt: field.time, shownAt: field.time }),

  /** The API returned the message, as far as this process knows for the first time. */
  MessageRead: event('usage.message-read', { ...message, receivedAt: field.time, readAt: field.time }),
}

/** What the topic usage-events holds. */
export const USAGE_EVENTS = {
  ...COUNTED,
  /**
   * Several of the other events of one key, because a record costs more CPU time than its event. A new version of one of
   * these events is a new version of this event too.
   */
  UsageRecorded: event('usage.recorded', {
    /** The key of each event. */
    keyId: field.id('key'),
    events: field.list(
      field.union('type', {
        ApiRequestServed: COUNTED.ApiRequestServed.fields,
        MailAccepted: COUNTED.MailAccepted.fields,
        MailRefused: COUNTED.MailRefused.fields,
        MessageShown: COUNTED.MessageShown.fields,
        MessageRead: COUNTED.MessageRead.fields,
      }),
    ),
  }),
}

export type UsageEvent = EventOf<typeof COUNTED>
/** An event of the topic: a single one, or several together. */
export type UsageTopicEvent = EventOf<typeof USAGE_EVENTS>
export type ApiRequestServed = EventOf<typeof COUNTED, 'ApiRequestServed'>
export type MailAccepted = EventOf<typeof COUNTED, 'MailAccepted'>
export type MailRefused = EventOf<typeof COUNTED, 'MailRefused'>
export type MessageShown = EventOf<typeof COUNTED, 'MessageShown'>
export type MessageRead = EventOf<typeof COUNTED, 'MessageRead'>
