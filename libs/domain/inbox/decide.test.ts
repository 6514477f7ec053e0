import { dayOf } from '#libs/domain/account/quota.js'
import type { InboxCommand } from './decide.js'
import type { EndedInbox } from './inbox.js'
import {
  changed,
  changeInbox,
  created,
  createInbox,
  deleted,
  deleteInbox,
  deleteMessage,
  expired,
  expireInbox,
  FACTS,
  given,
  issueToken,
  labelled,
  LIFESPAN,
  messageDeleted,
  minute,
  OTHER_KEY_ID,
  OTHER_MESSAGE_ID,
  received,
  receiveMessage,
  revokeToken,
} from './inbox.test-support.js'

function ended(state: EndedInbox['state'], endedAt: Date, messageCount = 0): EndedInbox {
  const {
    inboxId: id,
    maxMessages: _maxMessages,
    faults: _faults,
    cause: _cause,
    sealed: _sealed,
    ...facts
  } = FACTS
  const endedBy = state === 'deleted' ? OTHER_KEY_ID : null
  return {
    id,
    ...facts,
    createdAt: minute(0),
    messageCount,
    receivedCount: messageCount,
    receivedOn: messageCount === 0 ? null : { day: dayOf(minute(0)), count: messageCount },
    tokens: [],
    state,
    endedAt,
    endedBy,
  }
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

describe('ChangeInbox', () => {
  const [short, long] = [
    { text: '1m', ms: 60_000 },
    { text: '50m', ms: 50 * 60_000 },
  ]

  it('counts a new lifespan from the creation', () => {
    given(created)
      .when(changeInbox(minute(10), { lifespan: long }))
      .then([changed(minute(10), { lifetime: { duration: '50m', expiresAt: minute(50) } })])
    given(created)
      .when(changeInbox(minute(0), { lifespan: short }))
      .then([changed(minute(0), { lifetime: { duration: '1m', expiresAt: minute(1) } })])
  })

  it('is refused if the lifespan exceeds the retention, which the refusal contains', () => {
    const retention = { text: '49m', ms: 49 * 60_000 }
    given(created)
      .when(changeInbox(minute(10), { lifespan: long, retention }))
      .thenRefused({ code: 'over-retention', retention })
  })

  it('is refused if the inbox is older than its new lifespan', () => {
    given(created)
      .when(changeInbox(minute(1), { lifespan: short }))
      .thenRefused({ code: 'older-than-lifespan' })
  })

  it('does not measure an inbox by its retention if it keeps its lifespan', () => {
    const labels = { run: '43' }
    given(created)
      .when(changeInbox(minute(10), { labels, retention: short }))
      .then([changed(minute(10), { inbox: labelled(labels) })])
  })

  it('replaces all labels, and the sealed details', () => {
    const sealed = Buffer.from('other details')
    given(created)
      .when(changeInbox(minute(10), { labels: {}, sealed }))
      .then([changed(minute(10), { sealed, inbox: labelled({}) })])
  })

  it('changes nothing if everything is as wanted, or nothing is wanted', () => {
    given(created)
      .when(changeInbox(minute(10)))
      .then([])
    given(created)
      .when(changeInbox(minute(10), { lifespan: LIFESPAN, labels: { run: '42' } }))
      .then([])
  })

  it('numbers the changes', () => {
    const relabelled = changed(minute(1), { inbox: labelled({ run: '43' }) })
    given(created, relabelled)
      .when(changeInbox(minute(2), { lifespan: long }))
      .then([
        changed(minute(2), {
          revision: 2,
          lifetime: { duration: '50m', expiresAt: minute(50) },
          inbox: labelled({ run: '43' }),
        }),
      ])
  })

  it('is refused in the last second before the expiry, and then counts as expired', () => {
    const refusal = { code: 'inbox-ended', inbox: ended('expired', minute(30)) } as const
    const at = (ms: number) => new Date(minute(30).getTime() - ms)
    given(created)
      .when(changeInbox(at(1_000), { lifespan: long }))
      .thenRefused(refusal)
    given(created)
      .when(changeInbox(at(1_001), { lifespan: long }))
      .then([changed(at(1_001), { lifetime: { duration: '50m', expiresAt: minute(50) } })])
  })

  it('moves the expiry of an inbox', () => {
    const longer = changed(minute(10), { lifetime: { duration: '50m', expiresAt: minute(60) } })
    given(created, longer)
      .when(expireInbox(minute(31)))
      .then([])
    given(created, longer)
      .when(receiveMessage(minute(31)))
      .then([received(minute(31))])
    given(created, longer)
      .when(expireInbox(minute(60)))
      .then([{ ...expired, expiredAt: minute(60) }])
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
  { name: 'ChangeInbox', command: changeInbox },
  { name: 'IssueToken', command: issueToken },
  { name: 'RevokeToken', command: revokeToken },
  { name: 'DeleteInbox', command: deleteInbox },
  { name: 'ExpireInbox', command: expireInbox },
]

describe('a command for an inbox that does not exist', () => {
  test.each(COMMANDS)('$name is refused as unknown', ({ command }) => {
    given()
      .when(command(minute(1)))
      .thenRefused(unknown)
  })

  test.each(COMMANDS.slice(0, 5))('$name is refused after its deletion', ({ command }) => {
    given(created, one, deleted(minute(3)))
      .when(command(minute(4)))
      .thenRefused({ code: 'inbox-ended', inbox: ended('deleted', minute(3), 1) })
  })

  test.each(COMMANDS.slice(0, 5))('$name is refused after its expiry', ({ command }) => {
    const refusal = { code: 'inbox-ended', inbox: ended('expired', minute(30), 1) } as const
    given(created, one)
      .when(command(minute(30)))
      .thenRefused(refusal)
    given(created, one, expired)
      .when(command(minute(31)))
      .thenRefused(refusal)
  })
})
