import {
  boolean,
  count,
  event,
  id,
  list,
  optional,
  text,
  time,
  type EventOf,
} from '#libs/domain/event-sourcing/declare.js'
import { leaf } from './leaf.js'

/** All events of the topic audit-leaves. Their order is that of the leaves in each account's audit log. */
export const AUDIT_EVENTS = {
  /**
   * Leaves for events of the account, in the order of each partition. A leaf has no effect if the log already has one for
   * a later event of the same partition, so repetitions have none.
   */
  LeavesSequenced: event(
    'audit-leaves.sequenced',
    { logId: id('log'), leaves: list(leaf) },
    { contentType: 'application/cbor' },
  ),

  /** The log's first `size` leaves are to be signed, with that time. `root` is their hash in base64. */
  CheckpointTaken: event('audit-checkpoint.taken', {
    logId: id('log'),
    size: count,
    root: text,
    takenAt: time,
    /** Whether witnesses are to cosign it. */
    awaitsWitnesses: optional(boolean, false),
  }),

  /** As many witnesses as the operator requires have cosigned the checkpoint of that size. The lines are those of a signed note. */
  CheckpointCosigned: event('audit-checkpoint.cosigned', {
    logId: id('log'),
    size: count,
    root: text,
    takenAt: time,
    cosignatures: list(text),
  }),
}

export type AuditEvent = EventOf<typeof AUDIT_EVENTS>
