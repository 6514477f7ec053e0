import Type from 'typebox'
import {
  boolean,
  count,
  event,
  id,
  labels,
  milliseconds,
  named,
  optional,
  plain,
  text,
  time,
  type EventOf,
} from '#libs/domain/events/declare.js'

/** Requests that one event may count for: each of them is a row in ClickHouse. */
export const MAX_SHARED = 100

/** Labels of the inbox that something is about; none if it is about no inbox. */
export type UsageLabels = Readonly<Record<string, string>>

/** An event about a message. */
const message = {
  /** The key that created the inbox. */
  keyId: id('key'),
  inboxId: id('inb'),
  messageId: id('msg'),
  labels,
}

/**
 * What is counted and timed beside the events that everything follows from: nothing is decided by these. Mails that
 * came in, and inboxes, are counted from the inboxes' own events.
 */
export const USAGE_EVENTS = {
  /**
   * A request was answered, or its client has left. Requests of one key that are refused within half a second share an
   * event: times and bytes are then the mean of one of them.
   */
  ApiRequestServed: event('usage.api-request-served', {
    /** The key that asked. */
    keyId: id('key'),
    method: text,
    /** The path's template: bounded in number. */
    route: text,
    /** The HTTP status; 499 if the client left before it had the whole answer. */
    status: plain(Type.Integer({ minimum: 100, maximum: 599 })),
    /** Whether it was over the key's limits: answered 429. */
    isRefused: named('refused', boolean),
    /** How many requests the event counts for. */
    count: optional(plain(Type.Integer({ minimum: 2, maximum: MAX_SHARED })), 1),
    /** From the first byte of the request's head to the last of the answer, with fractions. */
    durationMs: milliseconds,
    /** Of the request's body. */
    requestBytes: count,
    /** All that was sent on the connection meanwhile. */
    responseBytes: count,
    inboxId: optional(id('inb'), null),
    labels,
    servedAt: time,
  }),

  /** One recipient's copy of a mail is durable, and is about to be answered 250. */
  MailAccepted: event('usage.mail-accepted', {
    ...message,
    /** Bytes of the mail's source. */
    size: count,
    /** From the last byte of the mail to its being durable. */
    acceptMs: milliseconds,
    /**
     * The same for mails of one inbox that have the same Message-ID, and for no others; 16 hex digits, which reveal
     * nothing without the inbox's key. Null if a mail has no Message-ID.
     */
    fingerprint: optional(plain(Type.String({ pattern: '^[0-9a-f]{16}$' })), null),
    acceptedAt: time,
  }),

  /**
   * A known inbox took no mail: it has ended or is full, the mail is not one that it could take, or this side could not
   * take it just then (451), after which the sender tries again. The mail had got as far as DATA, or to an inbox that
   * refuses at RCPT TO.
   */
  MailRefused: event('usage.mail-refused', {
    /** The key that created the inbox. */
    keyId: id('key'),
    inboxId: id('inb'),
    labels,
    /** In a word: one of few. */
    reason: text,
    /** The reply's code (RFC 5321, section 4.2). */
    code: plain(Type.Integer({ minimum: 400, maximum: 599 })),
    refusedAt: time,
  }),

  /** A message is in the views: parsed, and readable over the API. */
  MessageShown: event('usage.message-shown', { ...message, receivedAt: time, shownAt: time }),

  /** An answer of the API had the message in it, the first one that this process knows of. */
  MessageRead: event('usage.message-read', { ...message, receivedAt: time, readAt: time }),
}

export type UsageEvent = EventOf<typeof USAGE_EVENTS>
export type ApiRequestServed = EventOf<typeof USAGE_EVENTS, 'ApiRequestServed'>
export type MailAccepted = EventOf<typeof USAGE_EVENTS, 'MailAccepted'>
export type MailRefused = EventOf<typeof USAGE_EVENTS, 'MailRefused'>
export type MessageShown = EventOf<typeof USAGE_EVENTS, 'MessageShown'>
export type MessageRead = EventOf<typeof USAGE_EVENTS, 'MessageRead'>
