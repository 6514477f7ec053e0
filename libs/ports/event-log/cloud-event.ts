import { Encoder } from 'cbor-x'
import type Type from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import {
  object,
  readTime,
  type AnyFields,
  type EventDeclaration,
  type Kind,
  type ValuesOf,
} from '#libs/domain/events/declare.js'
import { messageOf } from '#libs/runtime/errors.js'
import { brand, type AccountId, type EventId, type KeyId } from '#libs/domain/ids/typeid.js'
import { asBuffer } from './as-buffer.js'
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

/** Begins the name of every type of event. */
export const TYPE_PREFIX = 'mayfly.'

type Declarations<Event extends { type: string }> = Readonly<Record<Event['type'], EventDeclaration>>

/** Plain CBOR (RFC 8949), without the extensions of its encoder: any reader takes it. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false, variableMapSize: true })

/** Encodes and decodes the events of one topic, with the attributes that any event has. */
export class OccurrenceCodec<Event extends { type: string }> {
  private readonly forms: readonly EventForm[]
  private readonly byType: ReadonlyMap<string, EventForm>
  private readonly byName: ReadonlyMap<string, EventForm>

  /** `keyOf` gives the record's key, which decides the partition, and the attribute `subject`. */
  constructor(
    declarations: Declarations<Event>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.forms = Object.entries<EventDeclaration>(declarations).map(
      ([type, each]) => new EventForm(type, each),
    )
    this.byType = new Map(this.forms.map((form) => [form.type, form]))
    this.byName = new Map(this.forms.map((form) => [form.name, form]))
  }

  encode({ id, time, source, event }: Occurrence<Event>): LogRecord {
    const form = this.byType.get(event.type)
    if (form === undefined) throw new TypeError(`unknown event "${event.type}"`)
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
      // A type of Mayfly's that this version does not know was written by a newer one.
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
      event: form.decode(value) as Event,
    }))
  }

  /** What another language's consumer must know of each type of event. */
  describe(): { type: string; version: number; contentType: string; schema: object }[] {
    return this.forms.map(({ name: type, version, contentType, schema }) => ({
      type,
      version,
      contentType,
      schema,
    }))
  }
}

/** The same for events of accounts: with the attributes that say which account's, and who caused them. */
export class EventCodec<Event extends { type: string }> {
  private readonly occurrences: OccurrenceCodec<Event>

  constructor(
    declarations: Declarations<Event>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.occurrences = new OccurrenceCodec(declarations, keyOf)
  }

  describe(): ReturnType<OccurrenceCodec<Event>['describe']> {
    return this.occurrences.describe()
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

/** How one type of event is written and read. */
class EventForm {
  /** The attribute `type`. */
  readonly name: string
  readonly version: number
  readonly contentType: EventDeclaration['contentType']
  readonly schema: Type.TSchema
  private readonly data: Kind<ValuesOf<AnyFields>>
  private readonly validator: Validator

  constructor(
    readonly type: string,
    { name, version, contentType, fields }: EventDeclaration,
  ) {
    this.name = TYPE_PREFIX + name
    this.version = version
    this.contentType = contentType
    this.data = object(fields)
    this.schema = this.data.schema
    this.validator = Compile(this.schema)
  }

  encode(event: object): Uint8Array {
    const data = this.data.write(event as never)
    return this.contentType === 'application/cbor' ? cbor.encode(data) : Buffer.from(JSON.stringify(data))
  }

  /** Throws if the data is not what the schema says. */
  decode(value: Uint8Array): object {
    const data: unknown =
      this.contentType === 'application/cbor' ? cbor.decode(value) : JSON.parse(asBuffer(value).toString())
    if (!this.validator.Check(data)) {
      const [error] = this.validator.Errors(data)
      throw new TypeError(
        `data does not fit the schema: ${error?.instancePath ?? ''} ${error?.message ?? ''}`,
      )
    }
    return { type: this.type, ...this.data.read(data) }
  }
}
