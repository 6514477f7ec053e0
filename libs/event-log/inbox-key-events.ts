import type { InboxId } from '#libs/typeid/typeid.js'
import { OccurrenceCodec, readTime, type EventForm } from './cloud-event.js'
import { eventForm, IdText, SealedText, Text, Time } from './event-form.js'

/** An inbox has a key, wrapped by the master key that `masterKeyId` names. */
export interface InboxKeyWrapped {
  type: 'InboxKeyWrapped'
  inboxId: InboxId
  masterKeyId: string
  wrapped: Uint8Array
}

/** For good: whatever stands on the log of that inbox's key, before or behind, is void. */
export interface InboxKeyForgotten {
  type: 'InboxKeyForgotten'
  inboxId: InboxId
  forgottenAt: Date
}

/** A master key serves new inboxes from now on. */
export interface MasterKeyTaken {
  type: 'MasterKeyTaken'
  masterKeyId: string
}

/** Says nothing. The brokers end a segment, and compact it, only where something is appended behind it. */
export interface KeysHeartbeat {
  type: 'KeysHeartbeat'
  /** The record's key, the same one in a partition each time, so that compaction leaves one. */
  pulse: string
  beatAt: Date
}

/** What stands on the topic inbox-keys. */
export type InboxKeyEvent = InboxKeyWrapped | InboxKeyForgotten | MasterKeyTaken | KeysHeartbeat

/** Key of the records that say which master key serves new inboxes. */
export const MASTER_KEY_SUBJECT = 'master-key'

const inboxKeyWrapped = eventForm({
  name: 'inbox-key.wrapped',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), master_key_id: Text, wrapped: SealedText },
  toData: (event: InboxKeyWrapped) => ({
    inbox_id: event.inboxId,
    master_key_id: event.masterKeyId,
    wrapped: Buffer.from(event.wrapped).toString('base64'),
  }),
  fromData: (data): InboxKeyWrapped => ({
    type: 'InboxKeyWrapped',
    inboxId: data.inbox_id,
    masterKeyId: data.master_key_id,
    wrapped: Buffer.from(data.wrapped, 'base64'),
  }),
})

const inboxKeyForgotten = eventForm({
  name: 'inbox-key.forgotten',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), forgotten_at: Time },
  toData: (event: InboxKeyForgotten) => ({
    inbox_id: event.inboxId,
    forgotten_at: event.forgottenAt.toISOString(),
  }),
  fromData: (data): InboxKeyForgotten => ({
    type: 'InboxKeyForgotten',
    inboxId: data.inbox_id,
    forgottenAt: readTime(data.forgotten_at),
  }),
})

const masterKeyTaken = eventForm({
  name: 'master-key.taken',
  contentType: 'application/json',
  properties: { master_key_id: Text },
  toData: (event: MasterKeyTaken) => ({ master_key_id: event.masterKeyId }),
  fromData: (data): MasterKeyTaken => ({ type: 'MasterKeyTaken', masterKeyId: data.master_key_id }),
})

const keysHeartbeat = eventForm({
  name: 'inbox-keys.heartbeat',
  contentType: 'application/json',
  properties: { pulse: Text, beat_at: Time },
  toData: (event: KeysHeartbeat) => ({ pulse: event.pulse, beat_at: event.beatAt.toISOString() }),
  fromData: (data): KeysHeartbeat => ({
    type: 'KeysHeartbeat',
    pulse: data.pulse,
    beatAt: readTime(data.beat_at),
  }),
})

/** How each event of the topic inbox-keys is written. */
export const INBOX_KEY_EVENT_FORMS = {
  InboxKeyWrapped: inboxKeyWrapped,
  InboxKeyForgotten: inboxKeyForgotten,
  MasterKeyTaken: masterKeyTaken,
  KeysHeartbeat: keysHeartbeat,
} satisfies { [Type in InboxKeyEvent['type']]: EventForm<Extract<InboxKeyEvent, { type: Type }>> }

export const inboxKeyEventCodec = new OccurrenceCodec<InboxKeyEvent>(INBOX_KEY_EVENT_FORMS, subjectOf)

function subjectOf(event: InboxKeyEvent): string {
  switch (event.type) {
    case 'InboxKeyWrapped':
    case 'InboxKeyForgotten':
      return event.inboxId
    case 'MasterKeyTaken':
      return MASTER_KEY_SUBJECT
    case 'KeysHeartbeat':
      return event.pulse
  }
}
