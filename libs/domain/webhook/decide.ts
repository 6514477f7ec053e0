import { MAX_GRACE_MS } from '#libs/domain/account/access.js'
import { accept, refuse, type Decision } from '#libs/domain/event-sourcing/decision.js'
import type { AccountId, WebhookId } from '#libs/domain/ids/typeid.js'
import type {
  RegistrationEvent,
  SealedSecret,
  StoredUrl,
  WebhookChanged,
  WebhookDisabled,
  WebhookRegistered,
} from './events.js'
import { errorInUrl } from './endpoint-url.js'
import { isUnchangedBy, REMOVED, type WebhookEntry } from './webhook.js'

export const MAX_WEBHOOKS_OF_INBOX = 20
/** Webhooks for all inboxes of an environment. Those of a single inbox count towards that inbox only. */
export const MAX_WEBHOOKS_OF_ENVIRONMENT = 100

/** The properties that all commands have, except for registration. */
interface CommandBase {
  accountId: AccountId
  webhookId: WebhookId
  now: Date
}

/** A URL as the client sent it, and as it may be stored. */
export interface RequestedUrl {
  text: string
  /** The webhook's current stored URL if that is the same URL, so that a command without a change is recognized. */
  stored: StoredUrl
}

export type WebhookCommand =
  | (Omit<WebhookRegistered, 'type' | 'url' | 'registeredAt'> & {
      type: 'RegisterWebhook'
      url: RequestedUrl
      now: Date
      /** How many webhooks the inbox or environment has, according to the view. */
      registered: number
    })
  /** Null means unchanged. */
  | (CommandBase &
      Pick<WebhookChanged, 'events' | 'state'> & { type: 'ChangeWebhook'; url: RequestedUrl | null })
  | (CommandBase & { type: 'RotateWebhookSecret'; secret: SealedSecret; graceMs: number })
  | (CommandBase & { type: 'DisableWebhook'; reason: WebhookDisabled['reason'] })
  | (CommandBase & { type: 'RemoveWebhook' })

/** Why a command was refused. Expected, not an error. */
export type WebhookRefusal =
  | { code: 'unknown-webhook' }
  | { code: 'unfit-url'; error: string }
  | { code: 'too-many-webhooks'; of: 'inbox' | 'environment'; max: number }
  | { code: 'over-grace'; maxMs: number }

/**
 * Checks a command against the view. The view may lag; if commands conflict, the order of their events on the log
 * decides. Neither an event nor a refusal means that there is nothing to change, as for a repeated registration.
 */
export function decide(
  entry: WebhookEntry,
  command: WebhookCommand,
): Decision<RegistrationEvent, WebhookRefusal> {
  if (command.type === 'RegisterWebhook') return entry === null ? register(command) : accept()
  const { accountId, webhookId, now } = command
  if (entry === REMOVED || entry?.accountId !== accountId) return refuse({ code: 'unknown-webhook' })

  switch (command.type) {
    case 'ChangeWebhook': {
      const { events, state } = command
      const error = command.url === null ? null : errorInUrl(command.url.text)
      if (error !== null) return refuse({ code: 'unfit-url', error })
      const url = command.url?.stored ?? null
      if (isUnchangedBy(entry, { url, events, state })) return accept()
      return accept({ type: 'WebhookChanged', accountId, webhookId, url, events, state, changedAt: now })
    }
    case 'RotateWebhookSecret': {
      const { secret, graceMs } = command
      if (graceMs > MAX_GRACE_MS) return refuse({ code: 'over-grace', maxMs: MAX_GRACE_MS })
      const rotation = entry.rotation + 1
      const graceEndsAt = new Date(now.getTime() + graceMs)
      const facts = { accountId, webhookId, rotation, secret, graceEndsAt }
      return accept({ type: 'WebhookSecretRotated', ...facts, rotatedAt: now })
    }
    case 'DisableWebhook': {
      if (entry.state === 'disabled') return accept()
      const { reason } = command
      return accept({ type: 'WebhookDisabled', accountId, webhookId, reason, disabledAt: now })
    }
    case 'RemoveWebhook':
      return accept({ type: 'WebhookRemoved', accountId, webhookId, removedAt: now })
  }
}

function register(
  command: Extract<WebhookCommand, { type: 'RegisterWebhook' }>,
): Decision<RegistrationEvent, WebhookRefusal> {
  const { registered, now, url, ...facts } = command
  const error = errorInUrl(url.text)
  if (error !== null) return refuse({ code: 'unfit-url', error })
  const of = facts.inboxId === null ? 'environment' : 'inbox'
  const max = of === 'inbox' ? MAX_WEBHOOKS_OF_INBOX : MAX_WEBHOOKS_OF_ENVIRONMENT
  if (registered >= max) return refuse({ code: 'too-many-webhooks', of, max })
  return accept({ ...facts, type: 'WebhookRegistered', url: url.stored, registeredAt: now })
}
