import Type from 'typebox'
import { event, type EventOf, type Field } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'

/** Requests or mails that one event may count for. Each of them is a row in ClickHouse. */
export const MAX_SHARED = 100

/** Labels of the inbox that an event is about; empty if it is about no inbox. */
export type UsageLabels = Readonly<Record<string, string>>

/** The key that created the inbox, or that the mail's sender authenticated with. */
const keyId = field.id('key')

/** One time for each mail that the event counts. Version 1 of the events had a single one. */
const timings = field.codec(
  Type.Union([
    field.milliseconds.schema,
    Type.Array(field.milliseconds.schema, { minItems: 1, maxItems: MAX_SHARED }),
  ]),
  (ms: readonly number[]) => [...ms],
  (data): readonly number[] => (Array.isArray(data) ? data : [data]) as number[],
)

const ONLY_IN_VERSION_1 = { description: 'only in version 1' }

/** Version 1 had an event for each mail, also for one that a fault had added. */
const acceptMs: Field<readonly number[]> = {
  at: () => ({
    schemas: { accept_ms: timings.schema, duplicate_of: Type.Optional(Type.String(ONLY_IN_VERSION_1)) },
    encode(ms, data) {
      data.accept_ms = timings.encode(ms)
    },
    decode: ({ accept_ms: ms, duplicate_of: of }) => (of === undefined ? timings.decode(ms) : []),
  }),
}

/** Version 1 had the time at which the message was received instead. */
const visibleMs: Field<readonly number[]> = {
  at: () => ({
    schemas: {
      visible_ms: Type.Optional(timings.schema),
      received_at: Type.Optional(Type.String({ format: 'date-time', ...ONLY_IN_VERSION_1 })),
    },
    encode(ms, data) {
      data.visible_ms = timings.encode(ms)
    },
    decode({ visible_ms: ms, shown_at: shownAt, received_at: receivedAt }) {
      if (ms !== undefined) return timings.decode(ms)
      return [sinceReceived(field.time.decode(receivedAt), field.time.decode(shownAt))]
    },
  }),
}

/** Milliseconds, never negative, although the clocks of two machines may differ. */
export function sinceReceived(receivedAt: Date, at: Date): number {
  return Math.max(at.getTime() - receivedAt.getTime(), 0)
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
    status: Type.Integer({ minimum: 100, maximum: 599 }),
    /** Whether it exceeded the key's limits and was answered 429. */
    isRefused: field.named('refused', field.boolean),
    /** How many requests the event counts for. */
    count: field.optional(Type.Integer({ minimum: 2, maximum: MAX_SHARED }), 1),
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

  /**
   * Copies of mails for recipients are durable; the replies 250 follow. A copy that a fault adds is not counted. Mails of
   * one key with the same labels within the same second share an event.
   */
  MailAccepted: event(
    'usage.mail-accepted',
    {
      keyId,
      labels: field.labels,
      /** Of each mail, from its last byte until it was durable. */
      ms: acceptMs,
      /** Of the first one. */
      at: field.named('accepted_at', field.time),
    },
    { version: 2 },
  ),

  /**
   * Mail to a known inbox was refused: the inbox has ended or is full, the mail is unacceptable, or Mayfly could not
   * accept it at that time (451), so that the sender tries again. It was refused at RCPT TO, at DATA or after it.
   */
  MailRefused: event('usage.mail-refused', {
    keyId,
    inboxId: field.id('inb'),
    labels: field.labels,
    /** One of a few words. */
    reason: field.text,
    /** The reply's code (RFC 5321, section 4.2). */
    code: Type.Integer({ minimum: 400, maximum: 599 }),
    refusedAt: field.time,
  }),

  /**
   * Messages are in the views: parsed, and readable over the API. Those of one key with the same labels within the same
   * second share an event.
   */
  MessageShown: event(
    'usage.message-shown',
    {
      keyId,
      labels: field.labels,
      /** Of each message, from the acceptance of its mail until then. */
      ms: visibleMs,
      /** Of the first one. */
      at: field.named('shown_at', field.time),
    },
    { version: 2 },
  ),

  /** The API returned the message, as far as this process knows for the first time. */
  MessageRead: event('usage.message-read', {
    keyId,
    inboxId: field.id('inb'),
    messageId: field.id('msg'),
    labels: field.labels,
    receivedAt: field.time,
    readAt: field.time,
  }),
}

/** What the topic usage-events holds. */
export const USAGE_EVENTS = {
  ...COUNTED,
  /**
   * Several of the other events of one key, because a record costs more CPU time than its event. A new version of one of
   * these events is a new version of this event too.
   */
  UsageRecorded: event(
    'usage.recorded',
    {
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
    },
    { version: 2 },
  ),
}

export type UsageEvent = EventOf<typeof COUNTED>

/** How many requests or mails an event counts. */
export function countedBy(event: UsageEvent): number {
  if ('count' in event) return event.count
  return 'ms' in event ? event.ms.length : 1
}

/** An event of the topic: a single one, or several together. */
export type UsageTopicEvent = EventOf<typeof USAGE_EVENTS>
export type ApiRequestServed = EventOf<typeof COUNTED, 'ApiRequestServed'>
export type MailAccepted = EventOf<typeof COUNTED, 'MailAccepted'>
export type MessageShown = EventOf<typeof COUNTED, 'MessageShown'>
