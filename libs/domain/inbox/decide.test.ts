import type { InboxCommand } from './decide.js'
import type { EndedInbox } from './inbox.js'
import {
  created,
  createInbox,
  deleted,
  deleteInbox,
  deleteMessage,
  expired,
  expireInbox,
  FACTS,
  given,
  LIFESPAN,
  messageDeleted,
  minute,
  OTHER_KEY_ID,
  OTHER_MESSAGE_ID,
  received,
  receiveMessage,
} from './inbox.test-support.js'

function ended(state: EndedInbox['state'], endedAt: Date, messageCount = 0): EndedInbox {
  const { inboxId: id, maxMessages: _maxMessages, sealed: _sealed, ...facts } = FACTS
  const endedBy = state === 'deleted' ? OTHER_KEY_ID : null
  return { id, ...facts, createdAt: minute(0), messageCount, state, endedAt, endedBy }
}

const [one, two] = [received(minute(1)), received(minute(2), OTHER_MESSAGE_ID)]
const unknown = { code: 'unknown-inbox' } as const

describe('CreateInbox', () => {
  it('creates an inbox that expires after its lifespan', () => {
    given()
      .when(createInbox(minute(0)))
      .then([created])
  })

  it('is refused if the lifespan exceeds the retention, which the refusal contains', () => {
    const retention = { text: '29m', ms: 29 * 60_000 }
    given()
      .when(createInbox(minute(0), retention))
      .thenRefused({ code: 'over-retention', retention })
  })

  it('is accepted if the lifespan equals the retention', () => {
    given()
      .when(createInbox(minute(0), LIFESPAN))
      .then([created])
  })
})

describe('ReceiveMessage', () => {
  it('adds a message to an active inbox', () => {
    given(created)
      .when(receiveMessage(minute(1)))
      .then([one])
  })

  it('is refused if the inbox is full', () => {
    given(created, one, two)
      .when(receiveMessage(minute(3)))
      .thenRefused({ code: 'inbox-full', maxMessages: 2 })
  })

  it('is accepted again once a message was deleted', () => {
    const third = receiveMessage(minute(4), OTHER_MESSAGE_ID)
    given(created, one, messageDeleted(minute(3)))
      .when(third)
      .then([received(minute(4), OTHER_MESSAGE_ID)])
  })
})

describe('DeleteMessage', () => {
  it('deletes a message', () => {
    given(created, one)
      .when(deleteMessage(minute(3)))
      .then([messageDeleted(minute(3))])
  })

  it('changes nothing the second time', () => {
    given(created, one, messageDeleted(minute(3)))
      .when(deleteMessage(minute(4)))
      .then([])
  })

  it('is refused for a message that the inbox never had', () => {
    given(created, two)
      .when(deleteMessage(minute(3)))
      .thenRefused({ code: 'unknown-message' })
  })
})

describe('DeleteInbox', () => {
  it('ends an active inbox, with or without mail', () => {
    given(created)
      .when(deleteInbox(minute(3)))
      .then([deleted(minute(3))])
    given(created, one, two)
      .when(deleteInbox(minute(3)))
      .then([deleted(minute(3))])
  })

  it('changes nothing the second time', () => {
    given(created, deleted(minute(3)))
      .when(deleteInbox(minute(4)))
      .then([])
    given(created, deleted(minute(3)))
      .when(deleteInbox(minute(31)))
      .then([])
  })

  it('is refused for an inbox past its expiry, with or without an InboxExpired event', () => {
    const refusal = { code: 'inbox-ended', inbox: ended('expired', minute(30)) } as const
    given(created)
      .when(deleteInbox(minute(30)))
      .thenRefused(refusal)
    given(created, expired)
      .when(deleteInbox(minute(31)))
      .thenRefused(refusal)
  })
})

describe('ExpireInbox', () => {
  it('ends an inbox at its expiry, not at the time of the command', () => {
    given(created)
      .when(expireInbox(minute(30)))
      .then([expired])
    given(created, one)
      .when(expireInbox(minute(55)))
      .then([expired])
  })

  it('changes nothing if the inbox is not due or has already ended', () => {
    given(created)
      .when(expireInbox(new Date(minute(30).getTime() - 1)))
      .then([])
    given(created, expired)
      .when(expireInbox(minute(31)))
      .then([])
    given(created, deleted(minute(3)))
      .when(expireInbox(minute(31)))
      .then([])
  })
})

const COMMANDS: { name: string; command: (now: Date) => InboxCommand }[] = [
  { name: 'ReceiveMessage', command: receiveMessage },
  { name: 'DeleteMessage', command: deleteMessage },
  { name: 'DeleteInbox', command: deleteInbox },
  { name: 'ExpireInbox', command: expireInbox },
]

describe('a command for an inbox that does not exist', () => {
  test.each(COMMANDS)('$name is refused as unknown', ({ command }) => {
    given()
      .when(command(minute(1)))
      .thenRefused(unknown)
  })

  test.each(COMMANDS.slice(0, 2))('$name is refused after its deletion', ({ command }) => {
    given(created, one, deleted(minute(3)))
      .when(command(minute(4)))
      .thenRefused({ code: 'inbox-ended', inbox: ended('deleted', minute(3), 1) })
  })

  test.each(COMMANDS.slice(0, 2))('$name is refused after its expiry', ({ command }) => {
    const refusal = { code: 'inbox-ended', inbox: ended('expired', minute(30), 1) } as const
    given(created, one)
      .when(command(minute(30)))
      .thenRefused(refusal)
    given(created, one, expired)
      .when(command(minute(31)))
      .thenRefused(refusal)
  })
})
