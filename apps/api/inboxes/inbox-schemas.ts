import Type from 'typebox'
import { named, optional } from '#libs/domain/event-sourcing/declare.js'
import type { EndedInbox as EndedState } from '#libs/domain/inbox/inbox.js'
import { Count, IdOf, orNull, OrNull, resource, time, Time } from '#libs/runtime/resource.js'
import { InboxLabels } from './inbox-requests.dto.js'
import type { Created } from './inboxes.service.js'

const identity = {
  id: IdOf('inb', 'Never changes and is never reused.'),
  address: Type.String({
    pattern: '^[^@]+@[^@]+$',
    description:
      'The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is made ' +
      'up, except that of an inbox that mail to its address has made.',
  }),
}
const labels = InboxLabels
const createdAt = time('When it was created.')
const messageCount = Count('The number of messages that it has received, without deleted ones.')

export const activeInbox = {
  ...identity,
  state: Type.Literal('active', { description: 'It receives mail.' }),
  duration: Type.String({ pattern: '^\\d+[mhdw]$', description: 'The lifetime that was last requested.' }),
  isProtected: named(
    'password_protected',
    Type.Boolean({ description: 'Whether reading its mail requires a password.' }),
  ),
  name: OrNull(Type.String(), 'A name to show to people.'),
  labels,
  environment: Type.String({ description: 'The environment of the key that created it.' }),
  createdAt,
  expiresAt: time('When it expires, with all its mail.'),
  messageCount,
  lastMessageAt: orNull(time(''), 'When the newest message arrived.'),
}

export const inboxExample = {
  id: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk',
  address: 'k3v9x2m4q8wz7t5b6n0c@mayfly.test',
  state: 'active',
  duration: '30m',
  password_protected: false,
  name: 'sign-up',
  labels: { run: '42' },
  environment: 'staging',
  created_at: '2026-11-21T09:30:00.000Z',
  expires_at: '2026-11-21T10:00:00.000Z',
  message_count: 1,
  last_message_at: '2026-11-21T09:30:02.417Z',
}
const { id, address, created_at, message_count } = inboxExample

/** An active inbox. */
export const { schema: Inbox, json: inboxJson } = resource(
  'Inbox',
  { description: 'An address that receives mail for a limited time.', examples: [inboxExample] },
  activeInbox,
)

const createdExample = { ...inboxExample, message_count: 0, last_message_at: null }

/** An inbox in the answer to its creation. */
export const { schema: CreatedInbox, json: createdInboxJson } = resource(
  'CreatedInbox',
  {
    description: 'An inbox, with its password if it is protected.',
    examples: [
      createdExample,
      { ...createdExample, password_protected: true, password: '6pq1v8d0c4m7t2h9k3s5b8n1g0' },
    ],
  },
  {
    ...activeInbox,
    password: optional(
      Type.String({
        description:
          'Only for a protected inbox, and only in this answer: the value for `Mayfly-Inbox-Password`.',
      }),
      null,
    ),
  },
  ({ inbox, details: { name }, password }: Created) => ({ ...inbox, name, password }),
)

/** An ended inbox in a list. */
export const { schema: EndedInbox, json: endedInboxJson } = resource(
  'EndedInbox',
  {
    description: 'An inbox after its end. It can be read as long as the log is kept.',
    examples: [
      {
        id,
        address,
        state: 'expired',
        labels: inboxExample.labels,
        created_at,
        ended_at: inboxExample.expires_at,
        message_count,
      },
    ],
  },
  {
    ...identity,
    state: Type.Union([Type.Literal('deleted'), Type.Literal('expired')], { description: 'How it ended.' }),
    labels,
    createdAt,
    endedAt: time('When it ended.'),
    messageCount,
  },
)

/** The answer to a deletion, also to a repeat. */
export const DeletedInbox = Type.Object(
  {
    id: identity.id,
    address: identity.address,
    state: Type.Literal('deleted', { description: 'It is permanently deleted.' }),
    deleted_at: Time('When it was deleted. The same in the answer to a repeat.'),
  },
  {
    $id: 'DeletedInbox',
    description: 'An inbox that was deleted.',
    examples: [{ id, address, state: 'deleted', deleted_at: '2026-11-21T09:41:07.122Z' }],
  },
)

export function deletedInboxJson({ id, address, endedAt }: EndedState) {
  return { id, address, state: 'deleted', deleted_at: endedAt.toISOString() }
}
