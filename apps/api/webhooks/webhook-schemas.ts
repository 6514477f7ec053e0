import Type from 'typebox'
import { WEBHOOK_EVENT_TYPES, type DisabledReason } from '#libs/domain/webhook/events.js'
import { IdOf, OneOf, OrNull, resource, SomeOf, time } from '#libs/runtime/resource.js'

const REASONS = ['by-request', 'gone', 'failing'] as const satisfies DisabledReason[]

/** `url` is decrypted. */
const webhook = {
  id: IdOf('whk', 'The id of the webhook. It never changes.'),
  url: Type.String({ description: 'The URL of the endpoint.' }),
  inboxId: OrNull(
    IdOf('inb', ''),
    'The inbox whose events are delivered; null for all inboxes of the environment.',
  ),
  events: SomeOf(WEBHOOK_EVENT_TYPES, 'The events that are delivered.'),
  state: Type.Union([Type.Literal('active'), Type.Literal('disabled')], {
    description: 'Whether events are delivered.',
  }),
  createdAt: time('When it was registered.'),
  disabledReason: OrNull(
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

export const { schema: Webhook, json: webhookJson } = resource(
  'Webhook',
  {
    description:
      'An endpoint to which the events of an inbox or of an environment are delivered. Its signing secret is shown only once.',
    examples: [example],
  },
  webhook,
)

/** A webhook in the answers that register it or rotate its secret. */
export const { schema: WebhookWithSecret, json: webhookWithSecretJson } = resource(
  'WebhookWithSecret',
  {
    description: 'A webhook with its new secret.',
    examples: [{ ...example, secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl0qVkKJ9yMOxN4DRdWcE=' }],
  },
  {
    ...webhook,
    secret: Type.String({
      description:
        'The signing secret in the form of Standard Webhooks: `whsec_` and base64. Only in this answer.',
      pattern: '^whsec_[A-Za-z0-9+/]+=*$',
    }),
  },
)
