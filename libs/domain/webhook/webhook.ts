import type { WebhookId } from '#libs/domain/ids/typeid.js'
import type {
  DisabledReason,
  RegistrationEvent,
  SealedSecret,
  StoredUrl,
  WebhookChanged,
  WebhookRegistered,
} from './events.js'

/** Where an inbox's, or an environment's, events are sent to: as it was registered, and changed since. */
export interface Webhook extends Omit<WebhookRegistered, 'type' | 'webhookId' | 'registeredAt'> {
  id: WebhookId
  state: 'active' | 'disabled'
  /** Null of an active one. */
  disabledReason: DisabledReason | null
  /** When it was registered, or last told to be active again. */
  activeSince: Date
  /** The secret before this one. One rotation back at most: never more than two sign. */
  former: FormerSecret | null
  /** How often the secret was changed. */
  rotation: number
  createdAt: Date
}

export interface FormerSecret {
  secret: SealedSecret
  /** From then on it signs no longer. */
  graceEndsAt: Date
}

/** What stays of a removed webhook: its registration, should it come again, makes no other one of it. */
export const REMOVED = 'removed'

/** What is known under the id of a webhook. */
export type WebhookEntry = Webhook | typeof REMOVED | null

/** Total and idempotent: an event that comes again, or out of place, gives back the entry it was given. */
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
      return isAsChanged(entry, event) && !isLaterActive(entry, event) ? entry : changed(entry, event)
    case 'WebhookSecretRotated': {
      // Of two rotations of one secret the first on the log holds.
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

/** Whether a webhook is already as a change would have it. */
export function isAsChanged(webhook: Webhook, { url, events, state }: Changes): boolean {
  return (
    (url === null || isSameUrl(url, webhook.url)) &&
    (events === null || areSame(events, webhook.events)) &&
    (state === null || state === webhook.state)
  )
}

/** The secrets that a webhook signs with, the present one first. */
export function secretsInForce({ secret, former }: Webhook, now: Date): SealedSecret[] {
  return former !== null && now < former.graceEndsAt ? [secret, former.secret] : [secret]
}

function changed(webhook: Webhook, { url, events, state, changedAt }: WebhookChanged): Webhook {
  const facts = { ...webhook, url: url ?? webhook.url, events: events ?? webhook.events }
  if (state === 'active') return { ...facts, state, disabledReason: null, activeSince: changedAt }
  if (state === null || webhook.state === 'disabled') return facts
  return { ...facts, state, disabledReason: 'by-request' }
}

/** The last of several such changes holds, whatever the state was before each: else a replay could tell another time. */
function isLaterActive({ activeSince }: Webhook, { state, changedAt }: WebhookChanged): boolean {
  return state === 'active' && activeSince.getTime() !== changedAt.getTime()
}

/** The same URL sealed twice is not the same here: each seal differs. */
function isSameUrl(one: StoredUrl, other: StoredUrl): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return one.masterKeyId === other.masterKeyId && Buffer.compare(one.sealed, other.sealed) === 0
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((each, index) => each === others[index])
}

export const MAX_URL_CHARACTERS = 2_048

/** Begins and goes on as an absolute URL of http does: without blanks, control characters and a fragment. */
export const URL_FORM = '^[Hh][Tt][Tt][Pp][Ss]?://[^\\u0000-\\u0020\\u007f#]+$'

const FORM = new RegExp(URL_FORM, 'u')

/**
 * Why a text is no URL of an endpoint, null if it is one: absolute, http or https (https is not demanded), of at
 * most 2,048 characters, without user name, password and fragment, as the URL Standard reads it. Where it leads is
 * checked when it is connected to, since what a name stands for may change.
 */
export function faultOfUrl(text: string): string | null {
  // Characters are of one or two units: a text of any length is counted in little time.
  if (text.length > 2 * MAX_URL_CHARACTERS || Array.from(text).length > MAX_URL_CHARACTERS) {
    return `must be of at most ${MAX_URL_CHARACTERS} characters`
  }
  const url = text.isWellFormed() && FORM.test(text) ? URL.parse(text) : null
  if (url === null) {
    return 'must be an absolute http or https URL without blanks and without a fragment, as "https://ci.example/mail"'
  }
  if (url.username !== '' || url.password !== '') return 'must have no user name and no password in it'
  return null
}
