import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type {
  DisabledReason,
  RegistrationEvent,
  SealedSecret,
  StoredUrl,
  WebhookChanged,
  WebhookRegistered,
} from './events.js'

/** The endpoint that events of an inbox, or of an environment, are sent to, in its current state. */
export interface Webhook extends Omit<WebhookRegistered, 'type' | 'webhookId' | 'registeredAt'> {
  id: WebhookId
  state: 'active' | 'disabled'
  /** Null if it is active. */
  disabledReason: DisabledReason | null
  /** When it was registered or last enabled. */
  activeSince: Date
  /** The previous secret. Older ones are invalid: notifications never have more than two signatures. */
  former: FormerSecret | null
  /** How often the secret was rotated. */
  rotation: number
  createdAt: Date
}

export interface FormerSecret {
  secret: SealedSecret
  /** It is not used from then on. */
  graceEndsAt: Date
}

/** Marks a removed webhook, so that a repeated registration does not create it again. */
export const REMOVED = 'removed'

/** Null for the mark. */
export function present<Row>(entry: Row | typeof REMOVED): Row | null {
  return entry === REMOVED ? null : entry
}

/** The state of a webhook's id. */
export type WebhookEntry = Webhook | typeof REMOVED | null

/** Total and idempotent: for a repeated or misplaced event, returns the same entry object. */
export function evolve(entry: WebhookEntry, event: RegistrationEvent): WebhookEntry {
  if (entry === REMOVED) return REMOVED
  if (event.type === 'WebhookRegistered') {
    if (entry !== null) return entry
    const { type: _type, webhookId, registeredAt, ...facts } = event
    return {
      ...facts,
      id: webhookId,
      state: 'active',
      disabledReason: null,
      activeSince: registeredAt,
      former: null,
      rotation: 0,
      createdAt: registeredAt,
    }
  }
  if (entry === null) return null
  switch (event.type) {
    case 'WebhookChanged':
      return isUnchangedBy(entry, event) && !updatesActiveSince(entry, event) ? entry : changed(entry, event)
    case 'WebhookSecretRotated': {
      // If two rotations replace the same secret, the first one on the log wins.
      if (event.rotation !== entry.rotation + 1) return entry
      const { secret, rotation, graceEndsAt } = event
      return { ...entry, secret, rotation, former: { secret: entry.secret, graceEndsAt } }
    }
    case 'WebhookDisabled':
      if (entry.state === 'disabled') return entry
      return { ...entry, state: 'disabled', disabledReason: event.reason }
    case 'WebhookRemoved':
      return REMOVED
  }
}

type Changes = Pick<WebhookChanged, 'url' | 'events' | 'state'>

/** Whether the changes would leave the webhook as it is. */
export function isUnchangedBy(webhook: Webhook, { url, events, state }: Changes): boolean {
  return (
    (url === null || isSameUrl(url, webhook.url)) &&
    (events === null || areSame(events, webhook.events)) &&
    (state === null || state === webhook.state)
  )
}

/** The secrets that notifications are signed with at a given time, the current one first. */
export function signingSecrets({ secret, former }: Webhook, now: Date): SealedSecret[] {
  return former !== null && now < former.graceEndsAt ? [secret, former.secret] : [secret]
}

function changed(webhook: Webhook, { url, events, state, changedAt }: WebhookChanged): Webhook {
  const facts = { ...webhook, url: url ?? webhook.url, events: events ?? webhook.events }
  if (state === 'active') return { ...facts, state, disabledReason: null, activeSince: changedAt }
  if (state === null || webhook.state === 'disabled') return facts
  return { ...facts, state, disabledReason: 'by-request' }
}

/** Enabling an active webhook still updates `activeSince`, so that replayed events give the same time. */
function updatesActiveSince({ activeSince }: Webhook, { state, changedAt }: WebhookChanged): boolean {
  return state === 'active' && activeSince.getTime() !== changedAt.getTime()
}

/** Compares stored URLs. The same URL sealed twice counts as different, since each seal is random. */
function isSameUrl(one: StoredUrl, other: StoredUrl): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return Buffer.compare(one.sealed, other.sealed) === 0
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, index) => each === others[index])
}
