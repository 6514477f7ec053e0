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
import type { UsageEvent } from '#libs/domain/usage/usage-events.js'
import { inboxRow, USAGE_TABLES, usageRows } from './usage-rows.js'

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

describe('the rows of usage events that were recorded together', () => {
  const about = { id, time: minute(5), source: '/mayfly/api', accountId, environment, keyId }
  const ids = { keyId, inboxId: FACTS.inboxId, labels: { run: '42' } }
  const events: UsageEvent[] = [
    { type: 'MailRefused', ...ids, reason: 'inbox-full', code: 552, refusedAt: minute(1) },
    {
      ...{ type: 'ApiRequestServed', ...ids, method: 'GET', route: '/v1/inboxes/{id}', status: 429 },
      ...{ isRefused: true, count: 3, durationMs: 1, requestBytes: 0, responseBytes: 9, servedAt: minute(2) },
    },
    { type: 'MailRefused', ...ids, reason: 'inbox-ended', code: 550, refusedAt: minute(3) },
    { type: 'MailAccepted', keyId, labels: {}, ms: [1.5, 7], at: minute(4) },
    { type: 'MessageShown', keyId, labels: {}, ms: [30, 20, 10], at: minute(5) },
  ]
  const position = { partition: 1, offset: 7 }

  it('are those of each event alone, at the position of their record', () => {
    const together = usageRows({ ...about, event: { type: 'UsageRecorded', keyId, events } }, position)
    expect(together).toEqual(events.flatMap((event) => usageRows({ ...about, event }, position)))
    expect(together.map(({ table }) => table)).toEqual([
      'mail_events',
      ...['requests', 'requests', 'requests'],
      'mail_events',
      ...Array<string>(5).fill('mail_events'),
    ])
  })

  it('are one for each time of mails', () => {
    const rows = events.slice(-2).flatMap((event) => usageRows({ ...about, event }, position))
    const column = (name: string) => rows.map(({ values }) => values[USAGE_TABLES.mail_events.indexOf(name)])
    expect(column('ms')).toEqual([1.5, 7, 30, 20, 10])
    expect(column('type')).toEqual([...Array<string>(2).fill('accepted'), ...Array<string>(3).fill('shown')])
  })
})
