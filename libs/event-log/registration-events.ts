import Type from 'typebox'
import {
  WEBHOOK_EVENT_TYPES,
  type RegistrationEvent,
  type SealedSecret,
  type StartFrom,
  type StoredUrl,
  type WebhookChanged,
  type WebhookDisabled,
  type WebhookRegistered,
  type WebhookRemoved,
  type WebhookSecretRotated,
} from '#libs/webhook/events.js'
import { readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, SealedText, Text, Time } from './event-form.js'

const contentType = 'application/json'

const EventTypes = Type.Array(Type.Enum(WEBHOOK_EVENT_TYPES))
const Secret = Type.Object({ master_key_id: Text, sealed: SealedText })
/** Plain text only in events written before URLs were sealed. */
const Url = Type.Union([Secret, Text])
const Start = Type.Union([Type.Enum(['now', 'beginning']), Time])
const State = Type.Enum(['active', 'disabled'])
/** Those of every event of a registration. */
const ids = { account_id: IdText('acc'), webhook_id: IdText('whk') }

const webhookRegistered = eventForm({
  name: 'webhook.registered',
  contentType,
  properties: {
    ...ids,
    environment: Text,
    /** Absent where it is for all inboxes of the environment. */
    inbox_id: Type.Optional(IdText('inb')),
    url: Url,
    events: EventTypes,
    secret: Secret,
    start_from: Start,
    positions: Type.Array(Type.Object({ partition: Count, offset: Count })),
    registered_at: Time,
  },
  toData: (event: WebhookRegistered) => ({
    ...writeIds(event),
    environment: event.environment,
    ...(event.inboxId === null ? {} : { inbox_id: event.inboxId }),
    url: writeUrl(event.url),
    events: [...event.events],
    secret: writeSecret(event.secret),
    start_from: event.startFrom instanceof Date ? event.startFrom.toISOString() : event.startFrom,
    positions: event.positions.map(({ partition, offset }) => ({ partition, offset })),
    registered_at: event.registeredAt.toISOString(),
  }),
  fromData: (data): WebhookRegistered => ({
    type: 'WebhookRegistered',
    ...readIds(data),
    environment: data.environment,
    inboxId: data.inbox_id ?? null,
    url: readUrl(data.url),
    events: data.events,
    secret: readSecret(data.secret),
    startFrom: readStart(data.start_from),
    positions: data.positions,
    registeredAt: readTime(data.registered_at),
  }),
})

const webhookChanged = eventForm({
  name: 'webhook.changed',
  contentType,
  /** What is absent stays as it was. */
  properties: {
    ...ids,
    url: Type.Optional(Url),
    events: Type.Optional(EventTypes),
    state: Type.Optional(State),
    changed_at: Time,
  },
  toData: (event: WebhookChanged) => ({
    ...writeIds(event),
    ...(event.url === null ? {} : { url: writeUrl(event.url) }),
    ...(event.events === null ? {} : { events: [...event.events] }),
    ...(event.state === null ? {} : { state: event.state }),
    changed_at: event.changedAt.toISOString(),
  }),
  fromData: (data): WebhookChanged => ({
    type: 'WebhookChanged',
    ...readIds(data),
    url: data.url === undefined ? null : readUrl(data.url),
    events: data.events ?? null,
    state: data.state ?? null,
    changedAt: readTime(data.changed_at),
  }),
})

const webhookSecretRotated = eventForm({
  name: 'webhook.secret-rotated',
  contentType,
  properties: { ...ids, rotation: Count, secret: Secret, grace_ends_at: Time, rotated_at: Time },
  toData: (event: WebhookSecretRotated) => ({
    ...writeIds(event),
    rotation: event.rotation,
    secret: writeSecret(event.secret),
    grace_ends_at: event.graceEndsAt.toISOString(),
    rotated_at: event.rotatedAt.toISOString(),
  }),
  fromData: (data): WebhookSecretRotated => ({
    type: 'WebhookSecretRotated',
    ...readIds(data),
    rotation: data.rotation,
    secret: readSecret(data.secret),
    graceEndsAt: readTime(data.grace_ends_at),
    rotatedAt: readTime(data.rotated_at),
  }),
})

const webhookDisabled = eventForm({
  name: 'webhook.disabled',
  contentType,
  properties: { ...ids, reason: Type.Enum(['gone', 'failing']), disabled_at: Time },
  toData: (event: WebhookDisabled) => ({
    ...writeIds(event),
    reason: event.reason,
    disabled_at: event.disabledAt.toISOString(),
  }),
  fromData: (data): WebhookDisabled => ({
    type: 'WebhookDisabled',
    ...readIds(data),
    reason: data.reason,
    disabledAt: readTime(data.disabled_at),
  }),
})

const webhookRemoved = eventForm({
  name: 'webhook.removed',
  contentType,
  properties: { ...ids, removed_at: Time },
  toData: (event: WebhookRemoved) => ({ ...writeIds(event), removed_at: event.removedAt.toISOString() }),
  fromData: (data): WebhookRemoved => ({
    type: 'WebhookRemoved',
    ...readIds(data),
    removedAt: readTime(data.removed_at),
  }),
})

type Ids = Pick<RegistrationEvent, 'accountId' | 'webhookId'>
type IdsData = Type.Static<Type.TObject<typeof ids>>

function writeIds({ accountId, webhookId }: Ids): IdsData {
  return { account_id: accountId, webhook_id: webhookId }
}

function readIds(data: IdsData): Ids {
  return { accountId: data.account_id, webhookId: data.webhook_id }
}

function writeSecret({ masterKeyId, sealed }: SealedSecret): Type.Static<typeof Secret> {
  return { master_key_id: masterKeyId, sealed: Buffer.from(sealed).toString('base64') }
}

function readSecret(data: Type.Static<typeof Secret>): SealedSecret {
  return { masterKeyId: data.master_key_id, sealed: Buffer.from(data.sealed, 'base64') }
}

function writeUrl(url: StoredUrl): Type.Static<typeof Url> {
  return typeof url === 'string' ? url : writeSecret(url)
}

function readUrl(data: Type.Static<typeof Url>): StoredUrl {
  return typeof data === 'string' ? data : readSecret(data)
}

function readStart(text: string): StartFrom {
  return text === 'now' || text === 'beginning' ? text : readTime(text)
}

/** How the events of webhooks on the topic account-events are written. */
export const REGISTRATION_EVENT_FORMS = {
  WebhookRegistered: webhookRegistered,
  WebhookChanged: webhookChanged,
  WebhookSecretRotated: webhookSecretRotated,
  WebhookDisabled: webhookDisabled,
  WebhookRemoved: webhookRemoved,
} satisfies { [Type in RegistrationEvent['type']]: EventForm<Extract<RegistrationEvent, { type: Type }>> }
