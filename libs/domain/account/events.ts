import Type from 'typebox'
import { event, type EventOf } from '#libs/domain/event-sourcing/declare.js'
import * as field from '#libs/domain/event-sourcing/declare.js'
import { REGISTRATION_EVENTS } from '#libs/domain/webhook/events.js'
import { faults } from '#libs/domain/inbox/fault.js'
import type { Lifespan } from '#libs/domain/inbox/new-inbox.js'
import { parseRetention, SCOPES } from './access.js'
import { CONSOLE_EVENTS } from './console-sessions.js'
import { DOMAIN_EVENTS } from './domain.js'
import { MEMBER_EVENTS } from './member.js'
import { personalText } from './personal-data.js'
import { perLimit, QUOTAS, quotaScope } from './quota.js'

const retention = field.codec(Type.String(), (value: Lifespan) => value.text, decodeRetention)

const timeOrNever = field.codec(
  Type.Union([field.time.schema, Type.Literal('never')]),
  (value: Date | 'never') => (value === 'never' ? value : value.toISOString()),
  (data) => (data === 'never' ? data : field.parseTime(String(data))),
)

const keyIds = { accountId: field.id('acc'), keyId: field.id('key') }

/** The name of a plan, which may no longer be configured. */
const plan = field.text

/** The plan's limit applies for each absent property; null if the account has no limits of its own. */
const limits = field.optional(
  field.partial({
    requestsPerMinute: field.count,
    accountRequestsPerMinute: field.count,
    retention,
    maxMessages: field.count,
    ...perLimit(() => field.count),
  }),
  null,
)

/** All events of account-events, with those of webhooks, domains, members and the console: they have one order. */
export const ACCOUNT_EVENTS = {
  AccountOpened: event(
    'account.opened',
    { accountId: field.id('acc'), name: personalText, plan, limits, openedAt: field.time },
    // Version 1 had no limits and four names of plans.
    { version: 2 },
  ),

  PlanChanged: event('account.plan-changed', {
    accountId: field.id('acc'),
    plan,
    limits,
    changedAt: field.time,
  }),

  /** An operator has suspended the account: its requests and its mail are refused until it is resumed. */
  AccountSuspended: event(
    'account.suspended',
    {
      accountId: field.id('acc'),
      /** The key that the request was made with. */
      suspendedBy: field.id('key'),
      suspendedAt: field.time,
    },
    { isRemoval: true },
  ),

  AccountResumed: event('account.resumed', {
    accountId: field.id('acc'),
    resumedBy: field.id('key'),
    resumedAt: field.time,
  }),

  /** An operator has closed the account for good. Everything in it is ended after that. */
  AccountClosed: event(
    'account.closed',
    {
      accountId: field.id('acc'),
      /** Of the key that the request was made with. */
      environment: field.text,
      closedBy: field.id('key'),
      closedAt: field.time,
    },
    { isRemoval: true },
  ),

  /** All keys, domains, webhooks and inboxes of the closed account have ended. */
  AccountErased: event(
    'account.erased',
    { accountId: field.id('acc'), erasedAt: field.time },
    { isRemoval: true },
  ),

  ApiKeyIssued: event('account.api-key-issued', {
    ...keyIds,
    name: field.text,
    environment: field.text,
    scopes: field.list(field.oneOf(SCOPES)),
    /** Requests per minute; null for the account's limit. */
    rateLimit: field.optional(field.count, null),
    /** The secret itself is not stored. */
    secretHash: field.sha256,
    /** The first characters of the secret, so that people can tell keys apart. */
    prefix: field.text,
    /** The key is invalid from then on; null if it never expires. */
    expiresAt: field.optional(field.time, null),
    /** `personal`: of the member that issued it. It has at most the access of that member, and ends with it. */
    owner: field.optional(field.oneOf(['personal']), 'service'),
    /** The key that the request was made with, or the member; null for the first key of an installation. */
    createdBy: field.optional(field.id('key', 'mem'), null),
    issuedAt: field.time,
  }),

  /** The key has a new secret and is otherwise unchanged. */
  ApiKeyRotated: event('account.api-key-rotated', {
    ...keyIds,
    /** Counts the key's rotations from 1. An event whose number is not higher than the last one changes nothing. */
    rotation: field.count,
    /** Of the new secret. */
    secretHash: field.sha256,
    prefix: field.text,
    /** Until then the previous secret is valid too. */
    graceEndsAt: field.time,
    /** When the key expires from then on; null if that is unchanged. */
    expiresAt: field.optional(timeOrNever, null),
    rotatedAt: field.time,
  }),

  /** The account is notified that a key is about to expire. */
  ApiKeyExpiring: event('account.api-key-expiring', {
    ...keyIds,
    /** Of the key, when the notice was recorded. */
    expiresAt: field.time,
    daysLeft: field.count,
    notifiedAt: field.time,
  }),

  /** The key is invalid from its `expiresAt` on, also before this is recorded. */
  ApiKeyExpired: event('account.api-key-expired', { ...keyIds, expiredAt: field.time }, { isRemoval: true }),

  ApiKeyRevoked: event(
    'account.api-key-revoked',
    {
      ...keyIds,
      /** The key that the request was made with. */
      revokedBy: field.id('key'),
      revokedAt: field.time,
    },
    { isRemoval: true },
  ),

  /** The faults on purpose of inboxes that are created in an environment from then on. */
  DefaultFaultsSet: event('account.default-faults-set', {
    accountId: field.id('acc'),
    environment: field.text,
    faults,
    /** The key that the request was made with. */
    setBy: field.id('key'),
    setAt: field.time,
  }),

  /** A quota that the account has set for itself. */
  QuotaSet: event('account.quota-set', {
    accountId: field.id('acc'),
    quota: field.oneOf(QUOTAS),
    scope: quotaScope,
    /** Null removes it. */
    limit: field.optional(field.count, null),
    /** The key that the request was made with. */
    setBy: field.id('key'),
    setAt: field.time,
  }),

  /** How people may sign in to the console for the account. */
  SignInSet: event('account.sign-in-set', {
    accountId: field.id('acc'),
    /** Only with an identity provider, not with links or keys. */
    requiresProvider: field.boolean,
    setBy: field.id('key', 'mem'),
    setAt: field.time,
  }),

  ...CONSOLE_EVENTS,
  ...REGISTRATION_EVENTS,
  ...DOMAIN_EVENTS,
  ...MEMBER_EVENTS,
}

export type AccountEvent = EventOf<typeof ACCOUNT_EVENTS>
export type DefaultFaultsSet = EventOf<typeof ACCOUNT_EVENTS, 'DefaultFaultsSet'>
export type QuotaSet = EventOf<typeof ACCOUNT_EVENTS, 'QuotaSet'>
export type AccountOpened = EventOf<typeof ACCOUNT_EVENTS, 'AccountOpened'>
export type PlanChanged = EventOf<typeof ACCOUNT_EVENTS, 'PlanChanged'>
export type ApiKeyIssued = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyIssued'>
export type ApiKeyRotated = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRotated'>
export type ApiKeyExpiring = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyExpiring'>
export type ApiKeyRevoked = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRevoked'>

function decodeRetention(text: string): Lifespan {
  const found = parseRetention(text)
  if (found === null) throw new TypeError(`not a retention: "${text}"`)
  return found
}
