import Type from 'typebox'
import { Count, Digest, IdOf, OrNull, Time } from '../openapi/describe.js'

const Position = Type.Object(
  {
    topic: Type.Literal('inbox-events', {
      description: 'Without the prefix that an installation may give it.',
    }),
    partition: Count("The inbox's."),
    offset: Count('Its offset in the partition.'),
  },
  { $id: 'Position', description: 'A position on the event log.' },
)

const TYPES = [
  Type.Literal('inbox.created'),
  Type.Literal('message.received'),
  Type.Literal('message.deleted'),
  Type.Literal('inbox.expired'),
  Type.Literal('inbox.deleted'),
] as const

export const Event = Type.Object(
  {
    id: IdOf('evt', 'Stays with it.'),
    type: Type.Union([...TYPES], { description: 'What happened.' }),
    time: Time('When.'),
    inbox_id: IdOf('inb', 'To which inbox.'),
    message_id: OrNull(IdOf('msg', ''), 'To which of its messages.'),
    key_id: OrNull(IdOf('key', ''), 'By which key; null where none did it.'),
    position: Position,
    size: OrNull(Count(''), "Bytes of a mail's source."),
    digest: OrNull(Digest(''), "SHA-256 of a mail's sealed bytes on the log."),
  },
  {
    $id: 'Event',
    description: 'Something that has happened to an inbox, without content.',
    examples: [
      {
        id: 'evt_01jd6b90czf2jb8z0w6s8p1q3r',
        type: 'message.received',
        time: '2026-11-21T09:30:02.417Z',
        inbox_id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
        message_id: 'msg_01jd6b90cxf2jb8yqv4t6m2n0p',
        key_id: null,
        position: { topic: 'inbox-events', partition: 3, offset: 1042 },
        size: 187,
        digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      },
    ],
  },
)
