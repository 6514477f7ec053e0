import Type, { type TSchema } from 'typebox'
import { TRUNCATED_PROPERTIES } from '#libs/contract/event-body.js'
import type { WebhookEventType } from '#libs/webhook/events.js'
import { DeletedInbox } from '../inboxes/inbox-schemas.js'
import { Header, MESSAGE_PROPERTIES } from '../messages/message-schemas.js'
import { OrNull, Time } from '../openapi/schema-parts.js'

const STREAMED = ['message.received', 'message.deleted', 'inbox.expired', 'inbox.deleted']

const EventMessage = Type.Object(
  {
    ...MESSAGE_PROPERTIES,
    headers: OrNull(Type.Array(Header), 'In their order, repeats kept; null where left out.'),
    truncated: Type.Optional(
      Type.Array(Type.Unsafe<string>({ type: 'string', enum: TRUNCATED_PROPERTIES }), {
        description:
          'Properties that are null because the event would exceed 256 kB. The message itself has them.',
      }),
    ),
  },
  { $id: 'EventMessage', description: 'A message, as an event tells of it.' },
)

const EventDeletedMessage = Type.Object(
  {
    id: MESSAGE_PROPERTIES.id,
    inbox_id: MESSAGE_PROPERTIES.inbox_id,
    deleted_at: Time('When it was deleted.'),
  },
  { $id: 'EventDeletedMessage', description: 'The end of a message, as an event tells of it.' },
)

const EventEndedInbox = Type.Object(
  {
    id: DeletedInbox.properties.id,
    state: Type.Union([Type.Literal('deleted'), Type.Literal('expired')], { description: 'How it ended.' }),
    ended_at: Time('When it ended.'),
  },
  { $id: 'EventEndedInbox', description: 'The end of an inbox, as an event tells of it.' },
)

const eventOf = <Data extends TSchema>(types: [string, ...string[]], data: Data) =>
  Type.Object({
    type: Type.Unsafe<string>({ type: 'string', enum: types, description: 'What happened.' }),
    timestamp: Time('When.'),
    data,
  })

/** What a webhook is sent, by the event that it is told of. */
export const SENT_BODIES = {
  'message.received': eventOf(['message.received'], EventMessage),
  'message.deleted': eventOf(['message.deleted'], EventDeletedMessage),
  'inbox.expired': eventOf(['inbox.expired'], EventEndedInbox),
  'inbox.deleted': eventOf(['inbox.deleted'], EventEndedInbox),
} satisfies Record<WebhookEventType, TSchema>

/** What an event in a stream has in `data`. */
const EventBody = Type.Union(
  [
    SENT_BODIES['message.received'],
    SENT_BODIES['message.deleted'],
    eventOf(['inbox.expired', 'inbox.deleted'], EventEndedInbox),
  ],
  {
    $id: 'EventBody',
    description: 'What happened to an inbox, and to what.',
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

/** One event of a stream. */
export const StreamedEvent = Type.Object(
  {
    id: Type.String({
      description: 'A cursor, just past it: what `Last-Event-ID` says when the client comes again.',
    }),
    event: Type.Unsafe<string>({ type: 'string', enum: STREAMED, description: 'What happened.' }),
    data: Type.Unsafe<string>({
      type: 'string',
      contentMediaType: 'application/json',
      contentSchema: EventBody,
      description: 'What happened, and to what, as JSON in one line.',
    }),
  },
  { $id: 'StreamedEvent', description: 'One of the server-sent events.' },
)
