import { brand, type EventId, type InboxId } from '#libs/typeid/typeid.js'
import { readTime, TYPE_PREFIX, type EventForm } from './cloud-event.js'
import { eventForm, IdText, SealedText, Text, Time } from './event-form.js'
import type { LogRecord } from './event-log.js'

export interface KeyWrapped {
  type: 'KeyWrapped'
  inboxId: InboxId
  masterKeyId: string
  wrapped: Uint8Array
}

export interface KeyForgotten {
  type: 'KeyForgotten'
  inboxId: InboxId
  forgottenAt: Date
}

/** Says nothing of any key: it makes an idle partition's segment end, so that what was replaced leaves the disk. */
export interface KeysHeartbeat {
  type: 'KeysHeartbeat'
  beatAt: Date
}

/** What stands on the topic inbox-keys. Its compaction keeps the last record of each key. */
export type KeyRecord = KeyWrapped | KeyForgotten | KeysHeartbeat

export type DecodedKeyRecord =
  | { kind: 'record'; record: KeyRecord }
  /** Written by a newer version than this one. */
  | { kind: 'newer'; type: string }
  | { kind: 'undecodable'; reason: string }

const keyWrapped = eventForm({
  name: 'inbox-key.wrapped',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), master_key_id: Text, wrapped: SealedText },
  toData: ({ inboxId, masterKeyId, wrapped }: KeyWrapped) => ({
    inbox_id: inboxId,
    master_key_id: masterKeyId,
    wrapped: Buffer.from(wrapped).toString('base64'),
  }),
  fromData: (data): KeyWrapped => ({
    type: 'KeyWrapped',
    inboxId: brand('inb', data.inbox_id),
    masterKeyId: data.master_key_id,
    wrapped: Buffer.from(data.wrapped, 'base64'),
  }),
})

const keyForgotten = eventForm({
  name: 'inbox-key.forgotten',
  contentType: 'application/json',
  properties: { inbox_id: IdText('inb'), forgotten_at: Time },
  toData: ({ inboxId, forgottenAt }: KeyForgotten) => ({
    inbox_id: inboxId,
    forgotten_at: forgottenAt.toISOString(),
  }),
  fromData: (data): KeyForgotten => ({
    type: 'KeyForgotten',
    inboxId: brand('inb', data.inbox_id),
    forgottenAt: readTime(data.forgotten_at),
  }),
})

const keysHeartbeat = eventForm({
  name: 'inbox-key.heartbeat',
  contentType: 'application/json',
  properties: { beat_at: Time },
  toData: ({ beatAt }: KeysHeartbeat) => ({ beat_at: beatAt.toISOString() }),
  fromData: (data): KeysHeartbeat => ({ type: 'KeysHeartbeat', beatAt: readTime(data.beat_at) }),
})

export const KEY_RECORD_FORMS = {
  KeyWrapped: keyWrapped,
  KeyForgotten: keyForgotten,
  KeysHeartbeat: keysHeartbeat,
} as const

const FORMS_BY_NAME: ReadonlyMap<string, Pick<EventForm<KeyRecord>, 'name' | 'version' | 'decode'>> = new Map(
  Object.values(KEY_RECORD_FORMS).map((form) => [form.name, form] as const),
)

export interface KeyRecordOrigin {
  id: EventId
  time: Date
  source: string
}

/** A CloudEvent like those of events, without an account: a key belongs to its inbox. */
export function encodeKeyRecord(key: string, record: KeyRecord, origin: KeyRecordOrigin): LogRecord {
  const form = KEY_RECORD_FORMS[record.type]
  return {
    key,
    headers: {
      ce_specversion: '1.0',
      ce_id: origin.id,
      ce_type: form.name,
      ce_source: origin.source,
      ce_subject: key,
      ce_time: origin.time.toISOString(),
      ce_schemaversion: String(form.version),
      'content-type': form.contentType,
    },
    value: dataOf(record),
  }
}

export function decodeKeyRecord({ headers, value }: Pick<LogRecord, 'headers' | 'value'>): DecodedKeyRecord {
  const type = headers.ce_type ?? ''
  const form = FORMS_BY_NAME.get(type)
  const version = Number(headers.ce_schemaversion)
  if (form === undefined) {
    return type.startsWith(TYPE_PREFIX)
      ? { kind: 'newer', type }
      : { kind: 'undecodable', reason: `unknown type "${type}"` }
  }
  if (version > form.version) return { kind: 'newer', type }
  try {
    return { kind: 'record', record: form.decode(value, version) }
  } catch (error) {
    return { kind: 'undecodable', reason: error instanceof Error ? error.message : String(error) }
  }
}

function dataOf(record: KeyRecord): Uint8Array {
  switch (record.type) {
    case 'KeyWrapped':
      return keyWrapped.encode(record)
    case 'KeyForgotten':
      return keyForgotten.encode(record)
    case 'KeysHeartbeat':
      return keysHeartbeat.encode(record)
  }
}
