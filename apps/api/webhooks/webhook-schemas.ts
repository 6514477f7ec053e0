import Type, { type Static } from 'typebox'
import { WEBHOOK_EVENT_TYPES, type DisabledReason } from '#libs/domain/webhook/events.js'
import type { Webhook as WebhookState } from '#libs/domain/webhook/webhook.js'
import { IdOf, OneOf, OrNull, Time } from '../openapi/describe.js'

const REASONS = ['by-request', 'gone', 'failing'] as const satisfies DisabledReason[]

const webhook = {
  id: IdOf('whk', 'The id of the webhook. It never changes.'),
  url: Type.String({ description: 'The URL of the endpoint.' }),
  inbox_id: OrNull(
    IdOf('inb', ''),
    'The inbox whose events are delivered; null for all inboxes of the environment.',
  ),
  events: Type.Array(OneOf(WEBHOOK_EVENT_TYPES), {
    description: 'The events that are delivered.',
  }),
  state: Type.Union([Type.Literal('active'), Type.Literal('disabled')], {
    description: 'Whether events are delivered.',
  }),
  created_at: Time('When it was registered.'),
  disabled_reason: OrNull(
    OneOf(REASONS),
    'Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every attempt failed. Null if it is active.',
  ),
}

const example = {
  id: 'whk_01jd6b2k8nf3gq6r9t2w5y8z1c',
  url: 'https://ci.example/mail',
  inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
  events: ['message.received'],
  state: 'active',
  created_at: '2026-11-21T09:30:00.000Z',
  disabled_reason: null,
}

export const Webhook = Type.Object(webhook, {
  $id: 'Webhook',
  description:
    'An endpoint to which the events of an inbox or of an environment are delivered. Its signing secret is shown only once.',
  examples: [example],
})

/** A webhook in the answers that register it or rotate its secret. */
export const WebhookWithSecret = Type.Object(
  {
    ...webhook,
    secret: Type.String({
      description:
        'The signing secret in the form of Standard Webhooks: `whsec_` and base64. Only in this answer.',
      pattern: '^whsec_[A-Za-z0-9+/]+=*$',
    }),
  },
  {
    $id: 'WebhookWithSecret',
    description: 'A webhook with its new secret.',
    examples: [{ ...example, secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl0qVkKJ9yMOxN4DRdWcE=' }],
  },
)

/** A webhook as JSON. `url` is its decrypted URL. */
export function webhookJson(webhook: WebhookState, url: string): Static<typeof Webhook> {
  return {
    id: webhook.id,
    url,
    inbox_id: webhook.inboxId,
    events: [...webhook.events],
    state: webhook.state,
    created_at: webhook.createdAt.toISOString(),
    disabled_reason: webhook.disabledReason,
  }
}
