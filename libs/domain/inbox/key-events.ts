import { event, id, sealedText, text, time, type EventOf } from '#libs/domain/event-sourcing/declare.js'

/** The name of its field is from when only inboxes had keys. */
const owner = id('inb', 'acc', 'mem')

/** All events of the topic inbox-keys. */
export const INBOX_KEY_EVENTS = {
  /** A key of an inbox, or of an account or member for personal data, wrapped by the master key that `masterKeyId` names. */
  InboxKeyWrapped: event('inbox-key.wrapped', {
    inboxId: owner,
    masterKeyId: text,
    wrapped: sealedText,
  }),

  /** Permanent: every other record of that key, earlier or later on the log, is void. */
  InboxKeyForgotten: event('inbox-key.forgotten', { inboxId: owner, forgottenAt: time }),

  /** From now on, new keys are wrapped by this master key. */
  MasterKeyTaken: event('master-key.taken', { masterKeyId: text }),

  /** Has no meaning. Brokers close a segment, and compact it, only if something is appended after it. */
  KeysHeartbeat: event('inbox-keys.heartbeat', {
    /** The record's key, always the same one in a partition, so that compaction keeps one heartbeat. */
    pulse: text,
    beatAt: time,
  }),
}

export type InboxKeyEvent = EventOf<typeof INBOX_KEY_EVENTS>
export type InboxKeyWrapped = EventOf<typeof INBOX_KEY_EVENTS, 'InboxKeyWrapped'>
