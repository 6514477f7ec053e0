import { messageOf } from '#libs/fault/message-of.js'
import { brand, type AccountId, type EventId, type KeyId } from '#libs/typeid/typeid.js'
import type { LogRecord } from './event-log.js'

/**
 * An event and what is said about any: the attributes of CloudEvents 1.0, which stand as `ce_` headers in the
 * binary mode of its Kafka binding (sections 3.2 and 3.2.3).
 */
export interface Occurrence<Event> {
  id: EventId
  time: Date
  /** What recorded it: `/mayfly/api`, `/mayfly/smtp`, `/mayfly/lifecycle`, `/mayfly/webhooks`, `/mayfly/projector`, `/mayfly/key-vault`. */
  source: string
  event: Event
}

/** An event of an account's, and who caused it. */
export interface Recorded<Event> extends Occurrence<Event> {
  accountId: AccountId
  environment: string
  keyId: KeyId | null
}

export type Decoded<Event, Recording = Recorded<Event>> =
  | { kind: 'event'; recorded: Recording }
  /** Written by a newer version than this one: its consumer must be deployed first. */
  | { kind: 'newer'; type: string; version: number }
  | { kind: 'undecodable'; reason: string }

/** How one type of event is written: its name and version on the log, and its data. */
export interface EventForm<Event> {
  /** The attribute `type`. */
  name: string
  version: number
  contentType: 'application/json' | 'application/cbor'
  encode(event: Event): Uint8Array
  /** Takes data of this version and every older one; throws where it is neither. */
  decode(value: Uint8Array, version: number): Event
}

/** Begins the name of every type of event. */
export const TYPE_PREFIX = 'mayfly.'

/** Encodes and decodes the events of one topic, with the attributes that any event has. */
export class OccurrenceCodec<Event extends { type: string }> {
  private readonly byName: ReadonlyMap<string, EventForm<Event>>

  /** `keyOf` gives the record's key, which decides the partition, and the attribute `subject`. */
  constructor(
    private readonly forms: Readonly<Record<Event['type'], EventForm<Event>>>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.byName = new Map(Object.values<EventForm<Event>>(forms).map((form) => [form.name, form]))
  }

  encode({ id, time, source, event }: Occurrence<Event>): LogRecord {
    const type: Event['type'] = event.type
    const form = this.forms[type]
    const key = this.keyOf(event)
    return {
      key,
      headers: {
        ce_specversion: '1.0',
        ce_id: id,
        ce_type: form.name,
        ce_source: source,
        ce_subject: key,
        ce_time: time.toISOString(),
        ce_schemaversion: String(form.version),
        'content-type': form.contentType,
      },
      value: form.encode(event),
    }
  }

  decode({ headers, value }: Pick<LogRecord, 'headers' | 'value'>): Decoded<Event, Occurrence<Event>> {
    const form = this.byName.get(headers.ce_type ?? '')
    const version = Number(headers.ce_schemaversion)
    if (form === undefined) {
      const type = headers.ce_type ?? ''
      // A type of Mayfly's that this version has not heard of was written by a newer one.
      if (type.startsWith(TYPE_PREFIX)) return { kind: 'newer', type, version }
      return { kind: 'undecodable', reason: `unknown type "${type}"` }
    }
    if (!Number.isInteger(version) || version < 1) {
      return { kind: 'undecodable', reason: `no schema version: "${headers.ce_schemaversion ?? ''}"` }
    }
    if (version > form.version) return { kind: 'newer', type: form.name, version }
    return orUndecodable(() => ({
      id: brand('evt', headers.ce_id ?? ''),
      time: readTime(headers.ce_time),
      source: headers.ce_source ?? '',
      event: form.decode(value, version),
    }))
  }
}

/** The same for events of accounts: with the attributes that say which account's, and who caused them. */
export class EventCodec<Event extends { type: string }> {
  private readonly occurrences: OccurrenceCodec<Event>

  constructor(
    forms: Readonly<Record<Event['type'], EventForm<Event>>>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.occurrences = new OccurrenceCodec(forms, keyOf)
  }

  encode(recorded: Recorded<Event>): LogRecord {
    const { headers, ...record } = this.occurrences.encode(recorded)
    const attributes = {
      ce_accountid: recorded.accountId,
      ce_environment: recorded.environment,
      ...(recorded.keyId === null ? {} : { ce_keyid: recorded.keyId }),
    }
    return { ...record, headers: { ...headers, ...attributes } }
  }

  decode(record: Pick<LogRecord, 'headers' | 'value'>): Decoded<Event> {
    const decoded = this.occurrences.decode(record)
    if (decoded.kind !== 'event') return decoded
    const { ce_accountid: accountId = '', ce_environment: environment = '', ce_keyid: keyId } = record.headers
    return orUndecodable(() => ({
      ...decoded.recorded,
      accountId: brand('acc', accountId),
      environment,
      keyId: keyId === undefined ? null : brand('key', keyId),
    }))
  }
}

function orUndecodable<Recording>(
  read: () => Recording,
): { kind: 'event'; recorded: Recording } | { kind: 'undecodable'; reason: string } {
  try {
    return { kind: 'event', recorded: read() }
  } catch (error) {
    return { kind: 'undecodable', reason: messageOf(error) }
  }
}

/** RFC 3339 in UTC, to the millisecond. */
export function readTime(text: string | undefined): Date {
  const time = new Date(text ?? '')
  if (Number.isNaN(time.getTime())) throw new TypeError(`not a time: "${text ?? ''}"`)
  return time
}
