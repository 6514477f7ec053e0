import { object } from '#libs/domain/event-sourcing/declare.js'
import { SENT_EVENTS } from '#libs/domain/inbox/events.js'
import { Count, Digest, IdOf, OneOf, orNull, resource, time } from '#libs/runtime/resource.js'
import { activeInbox, inboxExample } from '../inboxes/inbox-schemas.js'

const ERASING = SENT_EVENTS.filter(({ sent }) => sent.body !== 'message').map(({ publicName }) => publicName)

const erased = orNull(
  object({
    eventId: IdOf('evt', 'The event.'),
    type: OneOf<string>(ERASING, 'The type of the event.'),
    time: time('When it happened.'),
  }),
  'The event that has erased it since; null if it still exists.',
)

const EXAMPLE = {
  event_id: 'evt_01jd6bz0w4f2jb8z0w6s8p1q3r',
  type: 'inbox.deleted',
  time: '2026-11-21T09:41:07.122Z',
}

export const { schema: PastInbox, json: pastInboxJson } = resource(
  'PastInbox',
  {
    description: 'An inbox as it was. `name` is null, since it is sealed like mail.',
    examples: [{ ...inboxExample, name: null, erased: EXAMPLE }],
  },
  { ...activeInbox, erased },
)

export const { schema: PastMessage, json: pastMessageJson } = resource(
  'PastMessage',
  {
    description: 'A message that an inbox had, without content.',
    examples: [
      {
        id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        inbox_id: inboxExample.id,
        received_at: inboxExample.last_message_at,
        size: 1834,
        digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        erased: EXAMPLE,
      },
    ],
  },
  {
    id: IdOf('msg', 'The id of the message.'),
    inboxId: IdOf('inb', 'The inbox that received it.'),
    receivedAt: time('When it was accepted.'),
    size: Count('Bytes of its source.'),
    digest: Digest('SHA-256 of its sealed bytes on the log.'),
    erased,
  },
)
