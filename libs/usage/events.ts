import type { InboxId, KeyId, MessageId } from '#libs/typeid/typeid.js'

/**
 * What is counted and timed beside the events that everything follows from: nothing is decided by these. What has come
 * in, and which inboxes there are, is counted from the inboxes' own events.
 */
export type UsageEvent = ApiRequestServed | MailAccepted | MailRefused | MessageShown | MessageRead

/** Requests that one event may stand for: each of them is a row in ClickHouse. */
export const MAX_SHARED = 100

/** Labels of the inbox that something is about; none where it is about no inbox. */
export type UsageLabels = Readonly<Record<string, string>>

/**
 * An answer is through, or its client has left. Refused requests of one key that come within half a second share an
 * event: times and bytes are then the mean of one of them.
 */
export interface ApiRequestServed {
  type: 'ApiRequestServed'
  /** How many requests it stands for. */
  count: number
  /** Which asked. */
  keyId: KeyId
  method: string
  /** The path's template: bounded in number. */
  route: string
  /** As HTTP has it; 499 where the client left before the answer was through. */
  status: number
  /** Whether it was over the key's limits: answered 429. */
  isRefused: boolean
  /** From the first byte of the request's head to the last of the answer, with fractions. */
  durationMs: number
  /** Of the request's body. */
  requestBytes: number
  /** All that went down the connection meanwhile. */
  responseBytes: number
  inboxId: InboxId | null
  labels: UsageLabels
  servedAt: Date
}

/** One recipient's copy of a mail is durable, and is about to be answered 250. */
export interface MailAccepted {
  type: 'MailAccepted'
  /** Which made the inbox. */
  keyId: KeyId
  inboxId: InboxId
  messageId: MessageId
  /** Bytes of the mail's source. */
  size: number
  /** From the last byte of the mail to its being durable. */
  acceptMs: number
  /**
   * The same for mails of one inbox that have the same Message-ID, and for no others; 16 hex digits, which tell nothing
   * without the inbox's key. Null where a mail has none.
   */
  fingerprint: string | null
  labels: UsageLabels
  acceptedAt: Date
}

/**
 * A known inbox took no mail: it has ended or is full, the mail is not one that it could take, or this side could not
 * take it just then (451), after which the sender tries again. The mail had got as far as DATA, or to an inbox that
 * says no at RCPT TO.
 */
export interface MailRefused {
  type: 'MailRefused'
  /** Which made the inbox. */
  keyId: KeyId
  inboxId: InboxId
  /** In a word: one of few. */
  reason: string
  /** The reply's code (RFC 5321, section 4.2). */
  code: number
  labels: UsageLabels
  refusedAt: Date
}

/** A message is in the views: parsed, and to be had over the API. */
export interface MessageShown {
  type: 'MessageShown'
  /** Which made the inbox. */
  keyId: KeyId
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  labels: UsageLabels
  shownAt: Date
}

/** An answer of the API had the message in it, the first one that this process knows of. */
export interface MessageRead {
  type: 'MessageRead'
  /** Which made the inbox. */
  keyId: KeyId
  inboxId: InboxId
  messageId: MessageId
  receivedAt: Date
  labels: UsageLabels
  readAt: Date
}
