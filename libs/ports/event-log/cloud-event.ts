import { Encoder } from 'cbor-x'
import { Compile, type Validator } from 'typebox/compile'
import { ACCOUNT_EVENTS, type AccountEvent } from '#libs/domain/account/events.js'
import { AUDIT_EVENTS, type AuditEvent } from '#libs/domain/audit/events.js'
import { MAX_TEXT_CHARS } from '#libs/domain/audit/leaf.js'
import {
  object,
  parseTime,
  type EventDeclaration,
  type EventOf,
} from '#libs/domain/event-sourcing/declare.js'
import { mintId } from '#libs/domain/ids/mint.js'
import {
  brand,
  isId,
  type AccountId,
  type EventId,
  type KeyId,
  type MemberId,
} from '#libs/domain/ids/typeid.js'
import { INBOX_EVENTS, type InboxEvent } from '#libs/domain/inbox/events.js'
import { INBOX_KEY_EVENTS, type InboxKeyEvent } from '#libs/domain/inbox/key-events.js'
import { USAGE_EVENTS, type UsageTopicEvent } from '#libs/domain/usage/usage-events.js'
import { WEBHOOK_EVENTS, type WebhookEvent } from '#libs/domain/webhook/events.js'
import { messageOf } from '#libs/runtime/errors.js'
import type { LogAppender, LogRecord, Position } from './event-log.js'
import type { LogTopic } from './topics.js'

/*
 * Events as records of the log: CloudEvents 1.0 in the binary mode of its Kafka binding, where attributes are `ce_`
 * headers (sections 3.2 and 3.2.3). A codec for each topic, and the recorder that appends events.
 */

/** The parts of Mayfly that record events. */
export type EventSource =
  | '/mayfly/api'
  | '/mayfly/smtp'
  | '/mayfly/projector'
  | '/mayfly/lifecycle'
  | '/mayfly/webhooks'
  | '/mayfly/key-vault'
  | '/mayfly/cli'

/** An event with the attributes that every event has. */
export interface Occurrence<Event> {
  id: EventId
  time: Date
  /** The part of Mayfly that recorded it, an `EventSource`. */
  source: string
  event: Event
}

/** An event that belongs to an account, and the key that caused it. */
export interface Recorded<Event> extends Occurrence<Event> {
  accountId: AccountId
  environment: string
  keyId: KeyId | null
  /** Who caused it, if not the key itself, such as the id of an inbox token. */
  actor?: string | null
  /** Absent if no request of the API caused it. */
  origin?: EventOrigin
}

/** The request of the API that caused an event. */
export interface EventOrigin {
  requestId: string
  /** As `PersonalData.sealAddress` writes it; plain text in earlier events. */
  remoteAddress: string
}

export type Decoded<Event, Recording = Recorded<Event>> =
  | { kind: 'event'; recorded: Recording }
  /** Written by a newer version of Mayfly, which must be deployed to decode it. */
  | { kind: 'newer'; type: string; version: number }
  | { kind: 'undecodable'; reason: string }

/** The prefix of the attribute `type` of every event. */
export const TYPE_PREFIX = 'mayfly.'

type Declarations<Event extends { type: string }> = Readonly<Record<Event['type'], EventDeclaration>>

/** Plain CBOR (RFC 8949), without the encoder's extensions, so that any decoder can read it. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false, variableMapSize: true })

/** Encodes and decodes the events of one topic, with the attributes that every event has. */
export class OccurrenceCodec<Event extends { type: string }> {
  readonly formats: readonly EventFormat[]
  private readonly byType: ReadonlyMap<string, EventFormat>
  private readonly byName: ReadonlyMap<string, EventFormat>

  /** `keyOf` returns the record's key, which decides the partition and is the attribute `subject`. */
  constructor(
    declarations: Declarations<Event>,
    readonly keyOf: (event: Event) => string,
  ) {
    this.formats = Object.entries<EventDeclaration>(declarations).map(([type, each]) => formatOf(type, each))
    this.byType = new Map(this.formats.map((format) => [format.type, format]))
    this.byName = new Map(this.formats.map((format) => [format.name, format]))
  }

  encode({ id, time, source, event }: Occurrence<Event>): LogRecord {
    const format = this.byType.get(event.type)
    if (format === undefined) throw new TypeError(`unknown event "${event.type}"`)
    const key = this.keyOf(event)
    return {
      key,
      headers: {
        ce_specversion: '1.0',
        ce_id: id,
        ce_type: format.name,
        ce_source: source,
        ce_subject: key,
        ce_time: time.toISOString(),
        ce_schemaversion: String(format.version),
        'content-type': format.contentType,
      },
      value: format.encode(event),
    }
  }

  decode({ headers, value }: Pick<LogRecord, 'headers' | 'value'>): Decoded<Event, Occurrence<Event>> {
    const type = headers.ce_type ?? ''
    const format = this.byName.get(type)
    const version = Number(headers.ce_schemaversion)
    if (format === undefined) {
      // An unknown type with Mayfly's prefix was written by a newer version.
      if (type.startsWith(TYPE_PREFIX)) return { kind: 'newer', type, version }
      return { kind: 'undecodable', reason: `unknown type "${type}"` }
    }
    if (!Number.isInteger(version) || version < 1) {
      return { kind: 'undecodable', reason: `no schema version: "${headers.ce_schemaversion ?? ''}"` }
    }
    if (version > format.version) return { kind: 'newer', type, version }
    return orUndecodable(() => ({
      id: brand('evt', headers.ce_id ?? ''),
      time: parseTime(headers.ce_time),
      source: headers.ce_source ?? '',
      event: format.decode(value) as Event,
    }))
  }
}

/** The same for events of accounts, with attributes for the account and the key that caused the event. */
export class EventCodec<Event extends { type: string }> extends OccurrenceCodec<Event> {
  override encode(recorded: Recorded<Event>): LogRecord {
    const { headers, ...record } = super.encode(recorded)
    const attributes = {
      ce_accountid: recorded.accountId,
      ce_environment: recorded.environment,
      ...(recorded.keyId === null ? {} : { ce_keyid: recorded.keyId }),
      ...(recorded.actor == null ? {} : { ce_actor: recorded.actor }),
      ...(recorded.origin === undefined
        ? {}
        : { ce_requestid: recorded.origin.requestId, ce_remoteaddress: recorded.origin.remoteAddress }),
    }
    return { ...record, headers: { ...headers, ...attributes } }
  }

  override decode(record: Pick<LogRecord, 'headers' | 'value'>): Decoded<Event> {
    const decoded = super.decode(record)
    if (decoded.kind !== 'event') return decoded
    const { ce_accountid: accountId = '', ce_environment: environment = '' } = record.headers
    const { ce_keyid: keyId, ce_actor: actor } = record.headers
    const { ce_requestid: requestId, ce_remoteaddress: remoteAddress = '' } = record.headers
    return orUndecodable(() => ({
      ...decoded.recorded,
      accountId: brand('acc', accountId),
      environment: requireShort('ce_environment', environment),
      keyId: keyId === undefined ? null : brand('key', keyId),
      ...(actor === undefined ? {} : { actor: requireShort('ce_actor', actor) }),
      ...(requestId === undefined ? {} : { origin: { requestId, remoteAddress } }),
    }))
  }
}

/** Returns the attribute. Throws if it does not fit into a leaf of an audit log. */
function requireShort(attribute: string, text: string): string {
  if (text.length <= MAX_TEXT_CHARS) return text
  throw new TypeError(`${attribute} has more than ${MAX_TEXT_CHARS} characters`)
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

type EventFormat = ReturnType<typeof formatOf>

function formatOf(type: string, { name, version, contentType, isRemoval, fields }: EventDeclaration) {
  const { schema, encode, decode } = object(fields)
  // At the first use, because compiling all schemas would take 20 ms of every start.
  let compiled: Validator | null = null
  const isCbor = contentType === 'application/cbor'
  return {
    type,
    /** The attribute `type`. */
    name: TYPE_PREFIX + name,
    version,
    contentType,
    isRemoval,
    schema,
    encode(event: object): Uint8Array {
      const data = encode(event as never)
      return isCbor ? cbor.encode(data) : Buffer.from(JSON.stringify(data))
    },
    /** Throws if the data does not match the schema. */
    decode(value: Uint8Array): object {
      const data: unknown = isCbor ? cbor.decode(value) : JSON.parse(asBuffer(value).toString())
      const validator = (compiled ??= Compile(schema))
      if (validator.Check(data)) return { type, ...decode(data) }
      const [error] = validator.Errors(data)
      throw new TypeError(
        `data does not fit the schema: ${error?.instancePath ?? ''} ${error?.message ?? ''}`,
      )
    },
  }
}

/** A Buffer of the same memory, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export const inboxEventCodec = new EventCodec<InboxEvent>(INBOX_EVENTS, ({ inboxId }) => inboxId)
export const accountEventCodec = new EventCodec<AccountEvent>(ACCOUNT_EVENTS, ({ accountId }) => accountId)
export const webhookEventCodec = new EventCodec<WebhookEvent>(WEBHOOK_EVENTS, ({ webhookId }) => webhookId)
export const usageEventCodec = new EventCodec<UsageTopicEvent>(USAGE_EVENTS, ({ keyId }) => keyId)
export const auditEventCodec = new OccurrenceCodec<AuditEvent>(AUDIT_EVENTS, ({ logId }) => logId)
export const inboxKeyEventCodec = new OccurrenceCodec<InboxKeyEvent>(INBOX_KEY_EVENTS, subjectOf)

/** The key of records that set the master key for new keys. */
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

export const CODECS = {
  'inbox-events': inboxEventCodec,
  'account-events': accountEventCodec,
  'webhook-events': webhookEventCodec,
  'audit-leaves': auditEventCodec,
  'usage-events': usageEventCodec,
  'inbox-keys': inboxKeyEventCodec,
} as const satisfies Record<LogTopic, object>

const REMOVALS = new Set(
  Object.values(CODECS)
    .flatMap(({ formats }) => formats)
    .flatMap(({ isRemoval, name }) => (isRemoval ? [name] : [])),
)

/** Whether the event of a record ends or removes something. */
export function isRemoval({ headers }: Pick<LogRecord, 'headers'>): boolean {
  return REMOVALS.has(headers.ce_type ?? '')
}

/** The account and environment of an event, and who caused it. */
export type Attribution = Pick<Recorded<unknown>, 'accountId' | 'environment' | 'keyId' | 'actor'>

export type DomainEvent = InboxEvent | AccountEvent | WebhookEvent

/** Whose key seals the remote address of an event: the member's who caused it, otherwise the account's. */
export function originOwner({
  accountId,
  actor,
}: Pick<Recorded<unknown>, 'accountId' | 'actor'>): AccountId | MemberId {
  return actor != null && isId('mem', actor) ? actor : accountId
}

/** Appends domain events to the log for one role. */
export class Recorder {
  constructor(
    private readonly log: LogAppender,
    private readonly source: EventSource,
    private readonly now: () => Date,
    /** Resolves with the request that the caller of `record` answers, sealed for that owner; null if there is none. */
    private readonly originOf: ((owner: AccountId | MemberId) => Promise<EventOrigin | null>) | null = null,
  ) {}

  /** Resolves with the event's position once it is durable. Rejects as `EventLog.append` does. */
  async record(
    event: DomainEvent,
    { accountId, environment, keyId, actor = null }: Attribution,
  ): Promise<Position> {
    const from = { id: mintId('evt'), time: this.now(), source: this.source }
    // What Mayfly does itself may be about another account than the request.
    const isOwn = keyId === null && actor === null
    const owner = originOwner({ accountId, actor })
    const origin = isOwn || this.originOf === null ? null : await this.originOf(owner)
    const by = { ...from, accountId, environment, keyId, actor, ...(origin === null ? {} : { origin }) }
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
