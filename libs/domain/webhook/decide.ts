import { LONGEST_GRACE_MS } from '#libs/domain/account/access.js'
import { accept, refuse, type Decision } from '#libs/domain/events/declare.js'
import type { AccountId, WebhookId } from '#libs/domain/ids/typeid.js'
import type {
  RegistrationEvent,
  SealedSecret,
  StoredUrl,
  WebhookChanged,
  WebhookDisabled,
  WebhookRegistered,
} from './events.js'
import { isAsChanged, REMOVED, type WebhookEntry, faultOfUrl } from './webhook.js'

export const MAX_WEBHOOKS_OF_INBOX = 20
/** For all its inboxes; those of single inboxes are counted with their inbox. */
export const MAX_WEBHOOKS_OF_ENVIRONMENT = 100

/** Whom a command concerns, and when it was given. */
interface Given {
  accountId: AccountId
  webhookId: WebhookId
  now: Date
}

/** A URL as the client sent it, and as it may be stored. */
export interface RequestedUrl {
  text: string
  /** What the webhook already has, if it has this URL: only then does the command leave it as it is. */
  stored: StoredUrl
}

export type WebhookCommand =
  | (Omit<WebhookRegistered, 'type' | 'url' | 'registeredAt'> & {
      type: 'RegisterWebhook'
      url: RequestedUrl
      now: Date
      /** How many the inbox, or the environment, has, as the view shows it. */
      registered: number
    })
  /** What is null stays as it was. */
  | (Given & Pick<WebhookChanged, 'events' | 'state'> & { type: 'ChangeWebhook'; url: RequestedUrl | null })
  | (Given & { type: 'RotateWebhookSecret'; secret: SealedSecret; graceMs: number })
  | (Given & { type: 'DisableWebhook'; reason: WebhookDisabled['reason'] })
  | (Given & { type: 'RemoveWebhook' })

/** Why a command was refused; an expected answer, not an error. */
export type WebhookRefusal =
  | { code: 'unknown-webhook' }
  | { code: 'unfit-url'; fault: string }
  | { code: 'too-many-webhooks'; of: 'inbox' | 'environment'; most: number }
  | { code: 'over-grace'; mostMs: number }

/**
 * What a command leads to, checked against the view, which may lag: order on the log arbitrates. No event and no
 * refusal: it already is as the command wants it, also where a registration with the same id comes again.
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
      const fault = command.url === null ? null : faultOfUrl(command.url.text)
      if (fault !== null) return refuse({ code: 'unfit-url', fault })
      const url = command.url?.stored ?? null
      if (isAsChanged(entry, { url, events, state })) return accept()
      return accept({ type: 'WebhookChanged', accountId, webhookId, url, events, state, changedAt: now })
    }
    case 'RotateWebhookSecret': {
      const { secret, graceMs } = command
      if (graceMs > LONGEST_GRACE_MS) return refuse({ code: 'over-grace', mostMs: LONGEST_GRACE_MS })
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
  const fault = faultOfUrl(url.text)
  if (fault !== null) return refuse({ code: 'unfit-url', fault })
  const of = facts.inboxId === null ? 'environment' : 'inbox'
  const most = of === 'inbox' ? MAX_WEBHOOKS_OF_INBOX : MAX_WEBHOOKS_OF_ENVIRONMENT
  if (registered >= most) return refuse({ code: 'too-many-webhooks', of, most })
  return accept({ ...facts, type: 'WebhookRegistered', url: url.stored, registeredAt: now })
}
