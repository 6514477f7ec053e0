import Type from 'typebox'
import {
  codec,
  count,
  event,
  id,
  list,
  oneOf,
  optional,
  partial,
  sha256,
  text,
  time,
  type EventOf,
} from '#libs/domain/event-sourcing/declare.js'
import { REGISTRATION_EVENTS } from '#libs/domain/webhook/events.js'
import { faults } from '#libs/domain/inbox/fault.js'
import type { Lifespan } from '#libs/domain/inbox/new-inbox.js'
import { parseRetention, SCOPES } from './access.js'
import { CONSOLE_EVENTS } from './console-sessions.js'

const retention = codec(Type.String(), (value: Lifespan) => value.text, decodeRetention)

/** The name of a plan, which may no longer be configured. */
const plan = text

/** The plan's limit applies for each absent property; null if the account has no limits of its own. */
const limits = optional(partial({ requestsPerMinute: count, retention, maxMessages: count }), null)

/** All events of the topic account-events, including those of webhooks and the console: they have one order. */
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
    /** Requests per minute; null for the account's limit. */
    rateLimit: optional(count, null),
    /** The secret itself is not stored. */
    secretHash: sha256,
    /** The first characters of the secret, so that people can tell keys apart. */
    prefix: text,
    issuedAt: time,
  }),

  /** The key has a new secret and is otherwise unchanged. */
  ApiKeyRotated: event('account.api-key-rotated', {
    accountId: id('acc'),
    keyId: id('key'),
    /** Counts the key's rotations from 1. An event whose number is not higher than the last one changes nothing. */
    rotation: count,
    /** Of the new secret. */
    secretHash: sha256,
    prefix: text,
    /** Until then the previous secret is valid too. */
    graceEndsAt: time,
    rotatedAt: time,
  }),

  ApiKeyRevoked: event('account.api-key-revoked', {
    accountId: id('acc'),
    keyId: id('key'),
    /** The key that the request was made with. */
    revokedBy: id('key'),
    revokedAt: time,
  }),

  /** The faults on purpose of inboxes that are created in an environment from then on. */
  DefaultFaultsSet: event('account.default-faults-set', {
    accountId: id('acc'),
    environment: text,
    faults,
    /** The key that the request was made with. */
    setBy: id('key'),
    setAt: time,
  }),

  ...CONSOLE_EVENTS,
  ...REGISTRATION_EVENTS,
}

export type AccountEvent = EventOf<typeof ACCOUNT_EVENTS>
export type DefaultFaultsSet = EventOf<typeof ACCOUNT_EVENTS, 'DefaultFaultsSet'>
export type AccountOpened = EventOf<typeof ACCOUNT_EVENTS, 'AccountOpened'>
export type PlanChanged = EventOf<typeof ACCOUNT_EVENTS, 'PlanChanged'>
export type ApiKeyIssued = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyIssued'>
export type ApiKeyRotated = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRotated'>
export type ApiKeyRevoked = EventOf<typeof ACCOUNT_EVENTS, 'ApiKeyRevoked'>

function decodeRetention(text: string): Lifespan {
  const found = parseRetention(text)
  if (found === null) throw new TypeError(`not a retention: "${text}"`)
  return found
}
