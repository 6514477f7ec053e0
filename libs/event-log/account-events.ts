import Type from 'typebox'
import type {
  AccountEvent,
  AccountOpened,
  ApiKeyIssued,
  ApiKeyRevoked,
  ApiKeyRotated,
  PlanChanged,
} from '#libs/account/events.js'
import { parseRetention, type AccountLimits } from '#libs/account/plan.js'
import { SCOPES } from '#libs/account/scope.js'
import { EventCodec, readTime, type EventForm } from './cloud-event.js'
import { Count, eventForm, IdText, Sha256, Text, Time } from './event-form.js'
import { REGISTRATION_EVENT_FORMS } from './registration-events.js'

/** Absent where the plan's limits hold. */
const Limits = Type.Object({
  requests_per_minute: Type.Optional(Count),
  retention: Type.Optional(Text),
  max_messages: Type.Optional(Count),
})

/** Version 1 had no limits and four names of plans; its data fits. */
const accountOpened = eventForm({
  name: 'account.opened',
  version: 2,
  contentType: 'application/json',
  properties: {
    account_id: IdText('acc'),
    name: Text,
    plan: Text,
    limits: Type.Optional(Limits),
    opened_at: Time,
  },
  toData: (event: AccountOpened) => ({
    account_id: event.accountId,
    name: event.name,
    plan: event.plan,
    ...writeLimits(event.limits),
    opened_at: event.openedAt.toISOString(),
  }),
  fromData: (data): AccountOpened => ({
    type: 'AccountOpened',
    accountId: data.account_id,
    name: data.name,
    plan: data.plan,
    limits: readLimits(data.limits),
    openedAt: readTime(data.opened_at),
  }),
})

const planChanged = eventForm({
  name: 'account.plan-changed',
  contentType: 'application/json',
  properties: { account_id: IdText('acc'), plan: Text, limits: Type.Optional(Limits), changed_at: Time },
  toData: (event: PlanChanged) => ({
    account_id: event.accountId,
    plan: event.plan,
    ...writeLimits(event.limits),
    changed_at: event.changedAt.toISOString(),
  }),
  fromData: (data): PlanChanged => ({
    type: 'PlanChanged',
    accountId: data.account_id,
    plan: data.plan,
    limits: readLimits(data.limits),
    changedAt: readTime(data.changed_at),
  }),
})

const apiKeyIssued = eventForm({
  name: 'account.api-key-issued',
  contentType: 'application/json',
  properties: {
    account_id: IdText('acc'),
    key_id: IdText('key'),
    name: Text,
    environment: Text,
    scopes: Type.Array(Type.Enum(SCOPES)),
    rate_limit: Type.Optional(Count),
    secret_hash: Sha256,
    prefix: Text,
    issued_at: Time,
  },
  toData: (event: ApiKeyIssued) => ({
    account_id: event.accountId,
    key_id: event.keyId,
    name: event.name,
    environment: event.environment,
    scopes: [...event.scopes],
    ...(event.rateLimit === null ? {} : { rate_limit: event.rateLimit }),
    secret_hash: event.secretHash,
    prefix: event.prefix,
    issued_at: event.issuedAt.toISOString(),
  }),
  fromData: (data): ApiKeyIssued => ({
    type: 'ApiKeyIssued',
    accountId: data.account_id,
    keyId: data.key_id,
    name: data.name,
    environment: data.environment,
    scopes: data.scopes,
    rateLimit: data.rate_limit ?? null,
    secretHash: data.secret_hash,
    prefix: data.prefix,
    issuedAt: readTime(data.issued_at),
  }),
})

const apiKeyRotated = eventForm({
  name: 'account.api-key-rotated',
  contentType: 'application/json',
  properties: {
    account_id: IdText('acc'),
    key_id: IdText('key'),
    rotation: Count,
    secret_hash: Sha256,
    prefix: Text,
    grace_ends_at: Time,
    rotated_at: Time,
  },
  toData: (event: ApiKeyRotated) => ({
    account_id: event.accountId,
    key_id: event.keyId,
    rotation: event.rotation,
    secret_hash: event.secretHash,
    prefix: event.prefix,
    grace_ends_at: event.graceEndsAt.toISOString(),
    rotated_at: event.rotatedAt.toISOString(),
  }),
  fromData: (data): ApiKeyRotated => ({
    type: 'ApiKeyRotated',
    accountId: data.account_id,
    keyId: data.key_id,
    rotation: data.rotation,
    secretHash: data.secret_hash,
    prefix: data.prefix,
    graceEndsAt: readTime(data.grace_ends_at),
    rotatedAt: readTime(data.rotated_at),
  }),
})

const apiKeyRevoked = eventForm({
  name: 'account.api-key-revoked',
  contentType: 'application/json',
  properties: {
    account_id: IdText('acc'),
    key_id: IdText('key'),
    revoked_by: IdText('key'),
    revoked_at: Time,
  },
  toData: (event: ApiKeyRevoked) => ({
    account_id: event.accountId,
    key_id: event.keyId,
    revoked_by: event.revokedBy,
    revoked_at: event.revokedAt.toISOString(),
  }),
  fromData: (data): ApiKeyRevoked => ({
    type: 'ApiKeyRevoked',
    accountId: data.account_id,
    keyId: data.key_id,
    revokedBy: data.revoked_by,
    revokedAt: readTime(data.revoked_at),
  }),
})

function writeLimits(limits: AccountLimits | null): { limits?: Type.Static<typeof Limits> } {
  if (limits === null) return {}
  const { requestsPerMinute, retention, maxMessages } = limits
  return {
    limits: {
      ...(requestsPerMinute === undefined ? {} : { requests_per_minute: requestsPerMinute }),
      ...(retention === undefined ? {} : { retention: retention.text }),
      ...(maxMessages === undefined ? {} : { max_messages: maxMessages }),
    },
  }
}

function readLimits(limits: Type.Static<typeof Limits> | undefined): AccountLimits | null {
  if (limits === undefined) return null
  const { requests_per_minute: requestsPerMinute, retention: text, max_messages: maxMessages } = limits
  const retention = text === undefined ? undefined : parseRetention(text)
  if (retention === null) throw new TypeError(`not a retention: "${text ?? ''}"`)
  return {
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(retention === undefined ? {} : { retention }),
    ...(maxMessages === undefined ? {} : { maxMessages }),
  }
}

/** How each event of the topic account-events is written. */
export const ACCOUNT_EVENT_FORMS = {
  AccountOpened: accountOpened,
  PlanChanged: planChanged,
  ApiKeyIssued: apiKeyIssued,
  ApiKeyRotated: apiKeyRotated,
  ApiKeyRevoked: apiKeyRevoked,
  ...REGISTRATION_EVENT_FORMS,
} satisfies { [Type in AccountEvent['type']]: EventForm<Extract<AccountEvent, { type: Type }>> }

export const accountEventCodec = new EventCodec<AccountEvent>(ACCOUNT_EVENT_FORMS, (event) => event.accountId)
