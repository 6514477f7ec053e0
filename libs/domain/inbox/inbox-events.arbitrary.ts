import fc from 'fast-check'
import { idFromBytes, type KeyId } from '#libs/domain/ids/typeid.js'
import type { InboxCreated, InboxEvent } from './events.js'
import { created, INBOX_ID, messageId, minute } from './given-when-then.js'

/** Any moment that RFC 3339 can write, to the millisecond. */
export const anyTime = fc.date({
  min: new Date('0001-01-01T00:00:00.000Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
  noInvalidDate: true,
})

export const anyBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
const anyDigest = fc.stringMatching(/^[0-9a-f]{64}$/)

export function anyId<Prefix extends string>(prefix: Prefix) {
  return fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => idFromBytes(prefix, bytes))
}

/** Keys of one inbox and of a few messages, so that events meet. */
const anyKeyId = fc.integer({ min: 1, max: 3 }).map((n): KeyId => idFromBytes('key', Buffer.alloc(16, n)))
const anyMessageId = fc.integer({ min: 1, max: 4 }).map(messageId)
const anyMinute = fc.integer({ min: 0, max: 60 }).map(minute)
const inboxId = fc.constant(INBOX_ID)

/** The API takes no label of that name, which not every store keeps. */
const anyLabelName = fc.string().filter((name) => name !== '__proto__')
const anyLabels = fc.dictionary(anyLabelName, fc.string(), { maxKeys: 4 })
/** Null as in old records. */
const anyInboxAttribution = fc.option(fc.record({ keyId: anyKeyId, labels: anyLabels }))

const anyCreated = fc
  .record({
    createdAt: anyMinute,
    expiresAt: anyMinute,
    labels: anyLabels,
    maxMessages: fc.nat(),
    isProtected: fc.boolean(),
    sealed: anyBytes,
  })
  .map((facts): InboxCreated => ({ ...created, ...facts }))

export const anyInboxEvent: fc.Arbitrary<InboxEvent> = fc.oneof(
  { weight: 1, arbitrary: anyCreated },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('MessageReceived' as const),
      inboxId,
      messageId: anyMessageId,
      receivedAt: anyMinute,
      size: fc.nat(),
      digest: anyDigest,
      sealed: anyBytes,
      inbox: anyInboxAttribution,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('MessageDeleted' as const),
      inboxId,
      messageId: anyMessageId,
      keyId: anyKeyId,
      deletedAt: anyMinute,
      inbox: anyInboxAttribution,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('InboxExpired' as const),
      inboxId,
      expiredAt: anyMinute,
      inbox: anyInboxAttribution,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('InboxDeleted' as const),
      inboxId,
      keyId: anyKeyId,
      deletedAt: anyMinute,
      inbox: anyInboxAttribution,
    }),
  },
)

/** Events of one inbox in any order, early ones, late ones and repeats among them. */
export const anySequence = fc.array(anyInboxEvent, { maxLength: 20 })

/**
 * What a log can hold: nobody knows an inbox before its creation is on the log, so that leads; all else comes in any
 * order and any number of times.
 */
export const anyHistory = fc
  .tuple(anyCreated, anySequence)
  .map(([first, rest]): InboxEvent[] => [first, ...rest])
