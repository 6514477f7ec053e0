import { event, id, sealedText, text, time, type EventOf } from '#libs/domain/events/declare.js'

/** What is on the topic inbox-keys. */
export const INBOX_KEY_EVENTS = {
  /** An inbox has a key, wrapped by the master key that `masterKeyId` names. */
  InboxKeyWrapped: event('inbox-key.wrapped', {
    inboxId: id('inb'),
    masterKeyId: text,
    wrapped: sealedText,
  }),

  /** For good: every other record of that inbox's key, earlier or later on the log, is void. */
  InboxKeyForgotten: event('inbox-key.forgotten', { inboxId: id('inb'), forgottenAt: time }),

  /** A master key serves new inboxes from now on. */
  MasterKeyTaken: event('master-key.taken', { masterKeyId: text }),

  /** Says nothing. The brokers end a segment, and compact it, only if something is appended behind it. */
  KeysHeartbeat: event('inbox-keys.heartbeat', {
    /** The record's key, the same one in a partition each time, so that compaction leaves one. */
    pulse: text,
    beatAt: time,
  }),
}

export type InboxKeyEvent = EventOf<typeof INBOX_KEY_EVENTS>
export type InboxKeyWrapped = EventOf<typeof INBOX_KEY_EVENTS, 'InboxKeyWrapped'>
export type KeysHeartbeat = EventOf<typeof INBOX_KEY_EVENTS, 'KeysHeartbeat'>
