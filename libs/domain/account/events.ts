import Type from 'typebox'
import {
  count,
  event,
  id,
  kind,
  list,
  oneOf,
  optional,
  partial,
  sha256,
  text,
  time,
  type EventOf,
} from '#libs/domain/events/declare.js'
import { REGISTRATION_EVENTS } from '#libs/domain/webhook/events.js'
import type { Lifespan } from '#libs/domain/inbox/inbox.js'
import { parseRetention, SCOPES } from './access.js'

const retention = kind(Type.String(), ({ text: written }: Lifespan) => written, readRetention)

/** A plan's name, which the table of plans may no longer have. */
const plan = text

/** Absent limits are those of the plan; null if all are. */
const limits = optional(partial({ requestsPerMinute: count, retention, maxMessages: count }), null)

/** All that stands on account-events, registrations of webhooks included: one order holds among them. */
export const ACCOUNT_EVENTS = {
  AccountOpened: event(
    'account.opened',
    { accountId: id('acc'), name: text, plan, limits, openedAt: time },
    // Version 1 had no limits and four names of plans.
    { version: 2 },
  ),

  PlanChanged: event('account.plan-changed', { accountId: id('acc'), plan, limits, changedAt: time }),

  ApiKeyIssued: event('account.api-key-issued', {
    accountId: id('acc'),
    keyId: id('key'),
    name: text,
    environment: text,
    scopes: list(oneOf(SCOPES)),
    /** Most requests a minute; null for the account's limit. */
    rateLimit: optional(count, null),
    /** Of the secret, which stands nowhere. */
    secretHash: sha256,
    /** The secret's first characters, for people to tell keys apart. */
    prefix: text,
    issuedAt: time,
  }),

  /** The key gets another secret, and stays the same otherwise. */
  ApiKeyRotated: event('account.api-key-rotated', {
    accountId: id('acc'),
    keyId: id('key'),
    /** Counts rotations of the key from 1. One that is not higher than the last changes nothing. */
    rotation: count,
    /** Of the new secret. */
    secretHash: sha256,
    prefix: text,
    /** Until then the secret before it works too. */
    graceEndsAt: time,
    rotatedAt: time,
  }),

  ApiKeyRevoked: event('account.api-key-revoked', {
    accountId: id('acc'),
    keyId: id('key'),
    /** The key that did it. */
    revokedBy: id('key'),
    revokedAt: time,
  }),

  ...REGISTRATION_EVENTS,
}

export type AccountEvent = EventOf<typeof ACCOUNT_EVENTS>
export type AccountOpened = EventOf<typeof ACCOUNT_EVENTS, 'AccountOpened'>
export type PlanChanged = EventOf<typeof ACCOUNT_EVENTS, 'PlanChanged'>
export type ApiKeyIssued = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyIssued'>
export type ApiKeyRotated = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRotated'>
export type ApiKeyRevoked = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRevoked'>

function readRetention(written: string): Lifespan {
  const found = parseRetention(written)
  if (found === null) throw new TypeError(`not a retention: "${written}"`)
  return found
}
