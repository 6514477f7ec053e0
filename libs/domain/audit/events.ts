import { count, event, id, list, text, time, type EventOf } from '#libs/domain/event-sourcing/declare.js'

/** All events of the topic audit-leaves. Their order is that of the leaves in each account's audit log. */
export const AUDIT_EVENTS = {
  /**
   * Leaves for events of the account, in the order of each partition. A leaf has no effect if the log already has one for
   * a later event of the same partition, so repetitions have none.
   */
  LeavesSequenced: event(
    'audit-leaves.sequenced',
    { logId: id('log'), leaves: list(text) },
    { contentType: 'application/cbor' },
  ),

  /** `note` is a signed checkpoint of the log (C2SP tlog-checkpoint). */
  CheckpointSigned: event('audit-checkpoint.signed', {
    logId: id('log'),
    size: count,
    note: text,
    signedAt: time,
  }),
}

export type AuditEvent = EventOf<typeof AUDIT_EVENTS>
