import Type, { type Static } from 'typebox'
import { EXAMPLE_MESSAGE, messageJson, MESSAGE_SCHEMAS } from '#libs/mail/json/message-json.js'
import { MESSAGE } from '#libs/mail/message.js'
import { Count, OrNull, Time } from '../openapi/describe.js'

const Extracted = Type.Object(
  {
    text: Type.String({ description: 'The match.' }),
    groups: Type.Array(OrNull(Type.String(), 'Null for a group that is not part of the match.'), {
      description: 'What the capturing groups matched, also the named ones, in their order.',
    }),
  },
  { $id: 'Extracted', description: 'A match of the expression `extract` in a mail.' },
)

export const MESSAGE_PROPERTIES = {
  ...MESSAGE_SCHEMAS,
  id: MESSAGE.id,
  inbox_id: MESSAGE.inboxId,
}

const extracted = Type.Optional(
  Type.Array(Extracted, {
    maxItems: 100,
    description:
      'Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At most ' +
      '100 matches, with 65,536 characters in all.',
  }),
)

const example = messageJson(EXAMPLE_MESSAGE, '/v1/inboxes')

/** A message without its source. */
export const Message = Type.Object(
  { ...MESSAGE_PROPERTIES, extracted },
  {
    $id: 'Message',
    description: 'A received mail, parsed. Parts that it does not have are null or empty.',
    examples: [example],
  },
)

/** The answer to a wait for a number of messages. */
export const MessageCount = Type.Object(
  {
    count: Count('The number of messages that the inboxes of the label have received.'),
    inboxes: Count('The number of inboxes.'),
    cursor: Type.String({
      description:
        'A position before all messages that arrive later. One that arrived while counting may be counted and also be behind it.',
    }),
  },
  { $id: 'MessageCount', description: 'The messages of a label.' },
)

/** A message by id. */
export const MessageWithRaw = Type.Object(
  {
    ...MESSAGE_PROPERTIES,
    extracted,
    raw: Type.Optional(Type.String({ description: 'The whole source; absent with `raw=false`.' })),
    raw_encoding: Type.Optional(
      Type.Union([Type.Literal('utf-8'), Type.Literal('base64')], {
        description: '`base64` if the source is not valid UTF-8. Absent with `raw=false`.',
      }),
    ),
  },
  {
    $id: 'MessageWithRaw',
    description: 'A message, with its source unless `raw=false`.',
    examples: [{ ...example, raw: 'Subject: Your code is 493201\r\n\r\n…', raw_encoding: 'utf-8' }],
  },
)

/** The answer to a deletion. */
export const DeletedMessage = Type.Object(
  { id: MESSAGE.id, deleted_at: Time('When it was deleted. The same in the answer to a repeat.') },
  {
    $id: 'DeletedMessage',
    description: 'A message that was deleted.',
    examples: [{ id: example.id, deleted_at: '2026-11-21T09:38:10.004Z' }],
  },
)

/** A link of a message, and what its host answered. */
export const CheckedLink = Type.Object(
  {
    href: Type.String({ description: 'As in `links` of the message.' }),
    status: OrNull(
      Type.Integer({ minimum: 100, maximum: 599 }),
      'The HTTP status, after redirects; null if there was no answer.',
    ),
    error: OrNull(
      Type.String(),
      'Why there is no status, or why it is that of a redirect; null otherwise. Without addresses.',
    ),
  },
  {
    $id: 'CheckedLink',
    description: 'A link of a mail, and what its host answered.',
    examples: [{ href: 'https://app.example/verify?t=1', status: 200, error: null }],
  },
)
export type CheckedLink = Static<typeof CheckedLink>
