import Type from 'typebox'
import type { AccountEvent, AccountOpened, ApiKeyIssued } from '#libs/account/events.js'
import { PLAN_NAMES } from '#libs/account/plan.js'
import { SCOPES } from '#libs/account/scope.js'
import { brand } from '#libs/typeid/typeid.js'
import { EventCodec, readTime, type EventForm } from './cloud-event.js'
import { eventForm, IdText, Sha256, Text, Time } from './event-form.js'

const accountOpened = eventForm({
  name: 'account.opened',
  contentType: 'application/json',
  properties: { account_id: IdText('acc'), name: Text, plan: Type.Enum(PLAN_NAMES), opened_at: Time },
  toData: (event: AccountOpened) => ({
    account_id: event.accountId,
    name: event.name,
    plan: event.plan,
    opened_at: event.openedAt.toISOString(),
  }),
  fromData: (data): AccountOpened => ({
    type: 'AccountOpened',
    accountId: brand('acc', data.account_id),
    name: data.name,
    plan: data.plan,
    openedAt: readTime(data.opened_at),
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
    secret_hash: event.secretHash,
    prefix: event.prefix,
    issued_at: event.issuedAt.toISOString(),
  }),
  fromData: (data): ApiKeyIssued => ({
    type: 'ApiKeyIssued',
    accountId: brand('acc', data.account_id),
    keyId: brand('key', data.key_id),
    name: data.name,
    environment: data.environment,
    scopes: data.scopes,
    secretHash: data.secret_hash,
    prefix: data.prefix,
    issuedAt: readTime(data.issued_at),
  }),
})

/** How each event of the topic account-events is written. */
export const ACCOUNT_EVENT_FORMS = {
  AccountOpened: accountOpened,
  ApiKeyIssued: apiKeyIssued,
} satisfies { [Type in AccountEvent['type']]: EventForm<Extract<AccountEvent, { type: Type }>> }

export const accountEventCodec = new EventCodec<AccountEvent>(ACCOUNT_EVENT_FORMS, (event) => event.accountId)
