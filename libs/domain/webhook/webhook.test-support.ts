import fc from 'fast-check'
import { anyEventOf } from '#libs/domain/event-sourcing/any-event.test-support.js'
import { specificationOf } from '#libs/domain/event-sourcing/specification.test-support.js'
import { idFromBytes, type AccountId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { decide } from './decide.js'
import {
  REGISTRATION_EVENTS,
  type RegistrationEvent,
  type SealedSecret,
  type WebhookChanged,
  type WebhookDisabled,
  type WebhookRegistered,
  type WebhookRemoved,
  type WebhookSecretRotated,
} from './events.js'
import { evolve, REMOVED, type Webhook, type WebhookEntry } from './webhook.js'

/** `given(registered).when(change({ url })).then([changed({ url })])` */
export const { given } = specificationOf({ initial: null, evolve, decide })

/** The entry of a webhook's id after a history of events. */
export function entryAfter(...history: RegistrationEvent[]): WebhookEntry {
  return given(...history).state
}

export function webhookAfter(...history: RegistrationEvent[]): Webhook {
  const entry = entryAfter(...history)
  if (entry === null || entry === REMOVED) throw new Error(`no webhook: ${String(entry)}`)
  return entry
}

export const ACCOUNT_ID: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))
export const WEBHOOK_ID: WebhookId = idFromBytes('whk', Buffer.alloc(16, 2))
export const INBOX_ID: InboxId = idFromBytes('inb', Buffer.alloc(16, 3))
const ids = { accountId: ACCOUNT_ID, webhookId: WEBHOOK_ID }

/** Some days after the start of the example. */
export const day = (days: number): Date => new Date(Date.UTC(2026, 0, 1) + days * 86_400_000)

export function sealed(n: number): SealedSecret {
  return { masterKeyId: '0123456789abcdef', sealed: Buffer.alloc(60, n) }
}

export const FACTS = {
  ...ids,
  environment: 'staging',
  inboxId: INBOX_ID,
  url: sealed(0),
  events: ['message.received'],
  secret: sealed(0),
  startFrom: 'now',
  positions: [{ partition: 3, offset: 17 }],
} as const

export const registered: WebhookRegistered = { type: 'WebhookRegistered', ...FACTS, registeredAt: day(1) }

export function changed(
  changes: Partial<Pick<WebhookChanged, 'url' | 'events' | 'state'>>,
  changedAt = day(2),
): WebhookChanged {
  return { type: 'WebhookChanged', ...ids, url: null, events: null, state: null, ...changes, changedAt }
}

export function rotated(rotation: number, rotatedAt: Date, graceEndsAt: Date): WebhookSecretRotated {
  return { type: 'WebhookSecretRotated', ...ids, rotation, secret: sealed(rotation), graceEndsAt, rotatedAt }
}

export function disabled(reason: WebhookDisabled['reason'], disabledAt = day(2)): WebhookDisabled {
  return { type: 'WebhookDisabled', ...ids, reason, disabledAt }
}

export const removed: WebhookRemoved = { type: 'WebhookRemoved', ...ids, removedAt: day(8) }

/** Events of a few webhooks of one account, so that events about the same one occur. */
export function anyRegistrationEvent(
  accountId: fc.Arbitrary<AccountId> = fc.constant(idFromBytes('acc', Buffer.alloc(16, 1))),
): fc.Arbitrary<RegistrationEvent> {
  return anyEventOf(REGISTRATION_EVENTS, { account_id: accountId })
}

/** Makes a filter for the events of a log: it drops those whose registration or previous rotation did not pass before. */
export function isCaused(): (event: RegistrationEvent) => boolean {
  const rotations = new Map<WebhookId, number>()
  return (event) => {
    const known = rotations.get(event.webhookId)
    if (event.type === 'WebhookRegistered') {
      if (known === undefined) rotations.set(event.webhookId, 0)
      return true
    }
    if (known === undefined) return false
    if (event.type !== 'WebhookSecretRotated') return true
    if (event.rotation > known + 1) return false
    rotations.set(event.webhookId, Math.max(known, event.rotation))
    return true
  }
}
