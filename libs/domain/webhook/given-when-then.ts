import { whenThen } from '#libs/domain/events/given-when-then.js'
import { idFromBytes, type AccountId, type InboxId, type WebhookId } from '#libs/domain/ids/typeid.js'
import { decide, type WebhookCommand } from './decide.js'
import type {
  RegistrationEvent,
  SealedSecret,
  WebhookChanged,
  WebhookDisabled,
  WebhookRegistered,
  WebhookRemoved,
  WebhookSecretRotated,
} from './events.js'
import { evolve, REMOVED, type Webhook, type WebhookEntry } from './webhook.js'

/** What a history leaves under the id of one webhook. */
export function entryAfter(...history: RegistrationEvent[]): WebhookEntry {
  return history.reduce<WebhookEntry>(evolve, null)
}

export function webhookAfter(...history: RegistrationEvent[]): Webhook {
  const entry = entryAfter(...history)
  if (entry === null || entry === REMOVED) throw new Error(`there is no webhook: ${String(entry)}`)
  return entry
}

/** `given(registered).when(change({ url })).then([changed({ url })])` */
export function given(...history: RegistrationEvent[]) {
  const entry = entryAfter(...history)
  return whenThen((command: WebhookCommand) => decide(entry, command))
}

export const ACCOUNT_ID: AccountId = idFromBytes('acc', Buffer.alloc(16, 1))
export const WEBHOOK_ID: WebhookId = idFromBytes('whk', Buffer.alloc(16, 2))
export const INBOX_ID: InboxId = idFromBytes('inb', Buffer.alloc(16, 3))
const ids = { accountId: ACCOUNT_ID, webhookId: WEBHOOK_ID }

/** A moment of the example: days after the first. */
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
