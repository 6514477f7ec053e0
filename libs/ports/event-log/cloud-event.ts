import { Encoder } from 'cbor-x'
import { Compile } from 'typebox/compile'
import { object, readTime, type EventDeclaration, type EventOf } from '#libs/domain/events/declare.js'
import { messageOf } from '#libs/runtime/errors.js'
import { brand, type AccountId, type EventId, type KeyId } from '#libs/domain/ids/typeid.js'
import type { LogRecord, LogAppender, Position } from './event-log.js'
import { ACCOUNT_EVENTS, type AccountEvent } from '#libs/domain/account/events.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { INBOX_KEY_EVENTS, type InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { USAGE_EVENTS, type UsageEvent } from '#libs/domain/usage/usage-events.js'
import { WEBHOOK_EVENTS, type WebhookEvent } from '#libs/domain/webhook/webhook-events.js'
import { mintId } from '#libs/domain/ids/mint.js'
import type { LogTopic } from './topics.js'

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

/** Begins the attribute `type` of every event. */
export const TYPE_PREFIX = 'mayfly.'

type Declarations<Event extends { type: string }> = Readonly<Record<Event['type'], EventDeclaration>>

/** Plain CBOR (RFC 8949), without the extensions of its encoder: any reader takes it. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false, variableMapSize: true })

/** Encodes and decodes the events of one topic, with the attributes that any event has. */
export class OccurrenceCodec<Event extends { type: string }> {
  readonly forms: readonly EventForm[]
  private readonly byType: ReadonlyMap<string, EventForm>
  private readonly byName: ReadonlyMap<string, EventForm>

  /** `keyOf` gives the record's key, which decides the partition, and the attribute `subject`. */
  constructor(
    declarations: Declarations<Event>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.forms = Object.entries<EventDeclaration>(declarations).map(([type, each]) => formOf(type, each))
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
    const type = headers.ce_type ?? ''
    const form = this.byName.get(type)
    const version = Number(headers.ce_schemaversion)
    if (form === undefined) {
      // A type of Mayfly's that this version does not know was written by a newer one.
      if (type.startsWith(TYPE_PREFIX)) return { kind: 'newer', type, version }
      return { kind: 'undecodable', reason: `unknown type "${type}"` }
    }
    if (!Number.isInteger(version) || version < 1) {
      return { kind: 'undecodable', reason: `no schema version: "${headers.ce_schemaversion ?? ''}"` }
    }
    if (version > form.version) return { kind: 'newer', type, version }
    return orUndecodable(() => ({
      id: brand('evt', headers.ce_id ?? ''),
      time: readTime(headers.ce_time),
      source: headers.ce_source ?? '',
      event: form.decode(value) as Event,
    }))
  }
}

/** The same for events of accounts: with the attributes that say which account's, and who caused them. */
export class EventCodec<Event extends { type: string }> extends OccurrenceCodec<Event> {
  override encode(recorded: Recorded<Event>): LogRecord {
    const { headers, ...record } = super.encode(recorded)
    const attributes = {
      ce_accountid: recorded.accountId,
      ce_environment: recorded.environment,
      ...(recorded.keyId === null ? {} : { ce_keyid: recorded.keyId }),
    }
    return { ...record, headers: { ...headers, ...attributes } }
  }

  override decode(record: Pick<LogRecord, 'headers' | 'value'>): Decoded<Event> {
    const decoded = super.decode(record)
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

type EventForm = ReturnType<typeof formOf>

/** How one type of event is written and read. */
function formOf(type: string, { name, version, contentType, fields }: EventDeclaration) {
  const { schema, write, read } = object(fields)
  const validator = Compile(schema)
  const isCbor = contentType === 'application/cbor'
  return {
    type,
    /** The attribute `type`. */
    name: TYPE_PREFIX + name,
    version,
    contentType,
    schema,
    encode(event: object): Uint8Array {
      const data = write(event as never)
      return isCbor ? cbor.encode(data) : Buffer.from(JSON.stringify(data))
    },
    /** Throws if the data does not fit the schema. */
    decode(value: Uint8Array): object {
      const data: unknown = isCbor ? cbor.decode(value) : JSON.parse(asBuffer(value).toString())
      if (validator.Check(data)) return { type, ...read(data) }
      const [error] = validator.Errors(data)
      throw new TypeError(
        `data does not fit the schema: ${error?.instancePath ?? ''} ${error?.message ?? ''}`,
      )
    },
  }
}

/** The same bytes, not copied. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export const inboxEventCodec = new EventCodec<InboxEvent>(INBOX_EVENTS, ({ inboxId }) => inboxId)
export const accountEventCodec = new EventCodec<AccountEvent>(ACCOUNT_EVENTS, ({ accountId }) => accountId)
export const webhookEventCodec = new EventCodec<WebhookEvent>(WEBHOOK_EVENTS, ({ webhookId }) => webhookId)
export const usageEventCodec = new EventCodec<UsageEvent>(USAGE_EVENTS, ({ keyId }) => keyId)
export const inboxKeyEventCodec = new OccurrenceCodec<InboxKeyEvent>(INBOX_KEY_EVENTS, subjectOf)

/** Key of the records that say which master key serves new inboxes. */
export const MASTER_KEY_SUBJECT = 'master-key'

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

/** How the events of each topic are written and read. */
export const CODECS = {
  'inbox-events': inboxEventCodec,
  'account-events': accountEventCodec,
  'webhook-events': webhookEventCodec,
  'usage-events': usageEventCodec,
  'inbox-keys': inboxKeyEventCodec,
} as const satisfies Record<LogTopic, object>

/** Whom an event concerns and who caused it. */
export type Attribution = Pick<Recorded<unknown>, 'accountId' | 'environment' | 'keyId'>

export type DomainEvent = InboxEvent | AccountEvent | WebhookEvent

/** Appends domain events to the log on behalf of one role. */
export class Recorder {
  constructor(
    private readonly log: LogAppender,
    private readonly source:
      '/mayfly/api' | '/mayfly/smtp' | '/mayfly/lifecycle' | '/mayfly/webhooks' | '/mayfly/cli',
    private readonly now: () => Date,
  ) {}

  /** Resolves with the event's position once it is durable. Rejects as `EventLog.append` does. */
  record(event: DomainEvent, { accountId, environment, keyId }: Attribution): Promise<Position> {
    const by = { id: mintId('evt'), time: this.now(), source: this.source, accountId, environment, keyId }
    if (isOneOf(INBOX_EVENTS, event)) {
      return this.log.append('inbox-events', inboxEventCodec.encode({ ...by, event }))
    }
    if (isOneOf(ACCOUNT_EVENTS, event)) {
      return this.log.append('account-events', accountEventCodec.encode({ ...by, event }))
    }
    return this.log.append('webhook-events', webhookEventCodec.encode({ ...by, event }))
  }
}

function isOneOf<Declarations extends object>(
  declarations: Declarations,
  event: DomainEvent,
): event is DomainEvent & EventOf<Declarations> {
  return Object.hasOwn(declarations, event.type)
}
