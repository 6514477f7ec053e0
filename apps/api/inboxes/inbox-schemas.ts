import Type, { type Static } from 'typebox'
import type { ActiveInbox, EndedInbox as EndedState } from '#libs/domain/inbox/inbox.js'
import type { InboxDetails } from '#libs/domain/inbox/events.js'
import { Count, IdOf, OrNull, Time } from '../openapi/describe.js'
import { InboxLabels } from './inbox-requests.dto.js'
import type { Created } from './inboxes.service.js'

const identity = {
  id: IdOf('inb', 'Never changes and is never reused.'),
  address: Type.String({
    pattern: '^[0-9a-hjkmnp-tv-z]{20}@',
    description:
      'The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox.',
  }),
}
const createdAt = Time('When it was created.')
const messageCount = Count('The number of messages that it has received, without deleted ones.')

const activeInbox = {
  ...identity,
  state: Type.Literal('active', { description: 'It receives mail.' }),
  duration: Type.String({ pattern: '^\\d+[mhdw]$', description: 'The lifetime that was last requested.' }),
  password_protected: Type.Boolean({ description: 'Whether reading its mail requires a password.' }),
  name: OrNull(Type.String(), 'A name to show to people.'),
  labels: InboxLabels,
  environment: Type.String({ description: 'The environment of the key that created it.' }),
  created_at: createdAt,
  expires_at: Time('When it expires, with all its mail.'),
  message_count: messageCount,
  last_message_at: OrNull(Time(''), 'When the newest message arrived.'),
}

const example = {
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
const { id, address, labels, created_at, message_count } = example

/** An active inbox. */
export const Inbox = Type.Object(activeInbox, {
  $id: 'Inbox',
  description: 'An address that receives mail for a limited time.',
  examples: [example],
})

const createdExample = { ...example, message_count: 0, last_message_at: null }

/** An inbox in the answer to its creation. */
export const CreatedInbox = Type.Object(
  {
    ...activeInbox,
    password: Type.Optional(
      Type.String({
        description:
          'Only for a protected inbox, and only in this answer: the value for `Mayfly-Inbox-Password`.',
      }),
    ),
  },
  {
    $id: 'CreatedInbox',
    description: 'An inbox, with its password if it is protected.',
    examples: [
      createdExample,
      { ...createdExample, password_protected: true, password: '6pq1v8d0c4m7t2h9k3s5b8n1g0' },
    ],
  },
)

/** An ended inbox in a list. */
export const EndedInbox = Type.Object(
  {
    ...identity,
    state: Type.Union([Type.Literal('deleted'), Type.Literal('expired')], { description: 'How it ended.' }),
    labels: InboxLabels,
    created_at: createdAt,
    ended_at: Time('When it ended.'),
    message_count: messageCount,
  },
  {
    $id: 'EndedInbox',
    description: 'An inbox after its end. It can be read as long as the log is kept.',
    examples: [
      { id, address, state: 'expired', labels, created_at, ended_at: example.expires_at, message_count },
    ],
  },
)

/** The answer to a deletion. */
export const DeletedInbox = Type.Object(
  {
    ...identity,
    state: Type.Literal('deleted', { description: 'It is permanently deleted.' }),
    deleted_at: Time('When it was deleted. The same in the answer to a repeat.'),
  },
  {
    $id: 'DeletedInbox',
    description: 'An inbox that was deleted.',
    examples: [{ id, address, state: 'deleted', deleted_at: '2026-11-21T09:41:07.122Z' }],
  },
)

/** An active inbox as JSON. */
export function inboxJson(inbox: ActiveInbox, { name }: InboxDetails): Static<typeof Inbox> {
  return {
    id: inbox.id,
    address: inbox.address,
    state: inbox.state,
    duration: inbox.duration,
    password_protected: inbox.isProtected,
    name,
    labels: inbox.labels,
    environment: inbox.environment,
    created_at: inbox.createdAt.toISOString(),
    expires_at: inbox.expiresAt.toISOString(),
    message_count: inbox.messageCount,
    last_message_at: inbox.lastMessageAt?.toISOString() ?? null,
  }
}

/** A new inbox as JSON, with its password if it is protected. */
export function createdInboxJson({ inbox, details, password }: Created): Static<typeof CreatedInbox> {
  return { ...inboxJson(inbox, details), ...(password === null ? {} : { password }) }
}

/** An ended inbox as JSON. */
export function endedInboxJson(inbox: EndedState): Static<typeof EndedInbox> {
  return {
    id: inbox.id,
    address: inbox.address,
    state: inbox.state,
    labels: inbox.labels,
    created_at: inbox.createdAt.toISOString(),
    ended_at: inbox.endedAt.toISOString(),
    message_count: inbox.messageCount,
  }
}

/** The answer to a deletion as JSON, also to a repeat. */
export function deletedInboxJson({ id, address, endedAt }: EndedState): Static<typeof DeletedInbox> {
  return { id, address, state: 'deleted', deleted_at: endedAt.toISOString() }
}
