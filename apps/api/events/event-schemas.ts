import Type, { type TObject } from 'typebox'
import { TRUNCATED_PROPERTIES } from '#libs/mail/json/message-json.js'
import { Header } from '#libs/mail/message.js'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'
import { NOTIFICATIONS } from '#libs/domain/webhook/events.js'
import { DeletedInbox } from '../inboxes/inbox-schemas.js'
import { QUOTA_PROPERTIES } from '../quotas/quota-schemas.js'
import { MESSAGE_PROPERTIES } from '../messages/message-schemas.js'
import { IdOf, OneOf, OrNull, Time } from '../openapi/describe.js'

const EventMessage = Type.Object(
  {
    ...MESSAGE_PROPERTIES,
    headers: OrNull(
      Type.Array(Header),
      'All headers in their order, including repeated ones; null if they are left out.',
    ),
    truncated: Type.Optional(
      Type.Array(OneOf(TRUNCATED_PROPERTIES), {
        description:
          'Properties that are null because the event would exceed 256 kB. The message itself has them.',
      }),
    ),
  },
  { $id: 'EventMessage', description: 'A message, as in an event.' },
)

const EventDeletedMessage = Type.Object(
  {
    id: MESSAGE_PROPERTIES.id,
    inbox_id: MESSAGE_PROPERTIES.inbox_id,
    deleted_at: Time('When it was deleted.'),
  },
  { $id: 'EventDeletedMessage', description: 'A deleted message, as in an event.' },
)

const EventEndedInbox = Type.Object(
  {
    id: DeletedInbox.properties.id,
    state: Type.Union([Type.Literal('deleted'), Type.Literal('expired')], { description: 'How it ended.' }),
    ended_at: Time('When it ended.'),
  },
  { $id: 'EventEndedInbox', description: 'An ended inbox, as in an event.' },
)

const EventDomain = Type.Object(
  {
    id: IdOf('dom', 'The id of the domain.'),
    name: Type.String({ description: 'The name, in Unicode.' }),
    environment: Type.String({ description: 'The environment whose inboxes receive its mail.' }),
    state: OneOf(['verified', 'lapsed'], 'Its new state.'),
  },
  { $id: 'EventDomain', description: 'A domain, as in an event.' },
)

const EventKey = Type.Object(
  {
    id: IdOf('key', 'The id of the key.'),
    name: Type.String({ description: 'The name of the key.' }),
    environment: Type.String({ description: 'The environment that the key belongs to.' }),
    expires_at: Time('When it expires.'),
  },
  { $id: 'EventKey', description: 'A key, as in an event.' },
)

const EventQuota = Type.Object(
  {
    ...QUOTA_PROPERTIES,
    percent: Type.Union([Type.Literal(80), Type.Literal(100)], {
      description: 'Used, at least.',
    }),
  },
  { $id: 'EventQuota', description: 'A quota, as in an event.' },
)

type Declared = (typeof NOTIFICATIONS)[number]

/** The `data` of each kind of event. */
const DATA: Record<Declared['sent']['body'], TObject> = {
  message: EventMessage,
  'deleted-message': EventDeletedMessage,
  'ended-inbox': EventEndedInbox,
  domain: EventDomain,
  key: EventKey,
  quota: EventQuota,
}

/** The body of each event, as webhooks receive it and as streams, which have only events of inboxes, have it in `data`. */
export const EVENT_BODIES = NOTIFICATIONS.map(({ publicName, sent: { body, summary } }) => {
  const name = publicName.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const schema = Type.Object(
    {
      type: Type.Literal(publicName, { description: 'The type of the event.' }),
      timestamp: Time('When it happened.'),
      data: DATA[body],
    },
    { $id: `${name}Event`, description: `The event \`${publicName}\`.` },
  )
  return { type: publicName, name, summary, body, schema }
})

/** Renders the generated part of docs/webhooks.md. */
export function renderEventBodies(): string {
  const rows = NOTIFICATIONS.map(
    ({ publicName, sent: { body } }) => `| \`${publicName}\` | ${aboutData(body)} |`,
  )
  return ['| event | `data` |', '| --- | --- |', ...rows].join('\n')
}

function aboutData(kind: Declared['sent']['body']): string {
  if (kind === 'message')
    return 'the message as in the list of messages, without its source, which is at `raw_url`'
  const names = Object.keys(DATA[kind].properties)
  return names.map((name) => `\`${name}\``).join(', ')
}

/**
 * The schema of a `text/event-stream` answer. OpenAPI 3.1 has no keyword for one event of a stream; generated clients
 * parse its `data` and give it the type of the answer.
 */
export const EventBody = Type.Union(
  EVENT_BODIES.filter(({ type }) => SENT_EVENTS.some(({ publicName }) => publicName === type)).map(
    ({ schema }) => schema,
  ),
  {
    $id: 'EventBody',
    description: 'What happened to an inbox: the JSON in `data` of a server-sent event.',
    examples: [
      {
        type: 'inbox.expired',
        timestamp: '2026-11-21T10:00:00.000Z',
        data: {
          id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
          state: 'expired',
          ended_at: '2026-11-21T10:00:00.000Z',
        },
      },
    ],
  },
)
