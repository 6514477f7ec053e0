import {
  created,
  deleted,
  expired,
  FACTS,
  messageDeleted,
  minute,
  OTHER_KEY_ID,
  received,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { idFromBytes, type KeyId } from '#libs/domain/ids/typeid.js'
import { inboxRow, USAGE_TABLES } from './usage-rows.js'

const id = idFromBytes('evt', Buffer.alloc(16, 1))
const { accountId, environment, keyId } = FACTS

/** The row of an event, by column. */
function columnsOf(event: InboxEvent, causedBy: KeyId | null = OTHER_KEY_ID): Record<string, unknown> {
  const recorded = { id, time: minute(5), source: '/mayfly/api', accountId, environment }
  const { values } = inboxRow({ ...recorded, keyId: causedBy, event }, { partition: 0, offset: 0 })
  return Object.fromEntries(USAGE_TABLES.inbox_events.map((name, index) => [name, values[index]]))
}

describe("the row of an inbox's event", () => {
  test.each([created, messageDeleted(minute(2)), expired, deleted(minute(3))])(
    'has the key that created the inbox, and its labels: $type',
    (event) => {
      expect(columnsOf(event)).toMatchObject({ key_id: keyId, labels: ['run:42'] })
    },
  )

  it('has the key of the sender of a mail if there is one, otherwise the key of the inbox', () => {
    expect(columnsOf(received(minute(1)))).toMatchObject({ key_id: OTHER_KEY_ID, labels: ['run:42'] })
    expect(columnsOf(received(minute(1)), null)).toMatchObject({ key_id: keyId, labels: ['run:42'] })
  })

  test.each([received(minute(1)), messageDeleted(minute(2)), expired, deleted(minute(3))])(
    'has neither if the event was recorded before events had them: $type',
    (event) => {
      expect(columnsOf({ ...event, inbox: null })).toMatchObject({ key_id: '', labels: [] })
    },
  )
})
