import {
  created,
  deleted,
  expired,
  INBOX_ID,
  messageDeleted,
  messageId,
  minute,
  received,
} from '#libs/domain/inbox/inbox.test-support.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { KeyNotification } from '#libs/domain/webhook/events.js'
import type { Webhook } from '#libs/domain/webhook/webhook.js'
import { notificationsIn, wantsNotification, deliveryIdOf, notificationIdOf } from './matching.js'

const { accountId, environment } = created
const webhookId = idFromBytes('whk', Buffer.alloc(16, 1))
const webhook: Webhook = {
  ...{ id: webhookId, accountId, environment, inboxId: INBOX_ID, url: 'https://ci.example/' },
  events: ['message.received', 'inbox.deleted'],
  ...{ state: 'active', disabledReason: null, activeSince: minute(0), former: null, rotation: 0 },
  secret: { masterKeyId: '', sealed: Buffer.alloc(0) },
  ...{ startFrom: 'now', positions: [{ partition: 3, offset: 10 }], createdAt: minute(0) },
}

function inboxNotification(event: InboxEvent, position = { partition: 3, offset: 10 }) {
  const id = idFromBytes('evt', Buffer.alloc(16, 1))
  const recorded = { id, time: minute(1), source: '/mayfly/smtp', accountId, environment, keyId: null, event }
  const [found] = notificationsIn([{ offset: position.offset, recorded }], position.partition)
  if (found === undefined) throw new Error('no notification')
  return found
}

const mail = received(minute(1))

describe('the notification of an event', () => {
  test.each([
    { event: mail, type: 'message.received', at: minute(1) },
    { event: messageDeleted(minute(2)), type: 'message.deleted', at: minute(2) },
    { event: expired, type: 'inbox.expired', at: minute(30) },
    { event: deleted(minute(4)), type: 'inbox.deleted', at: minute(4) },
  ])('is $type, with the time of the event', ({ event, type, at }) => {
    expect(inboxNotification(event).notification).toMatchObject({ type, inboxId: INBOX_ID, occurredAt: at })
  })

  it('does not exist for the creation of an inbox', () => {
    expect(() => inboxNotification(created)).toThrow('no notification')
  })
})

describe('a webhook', () => {
  const wants = (facts: Partial<Webhook>, event: InboxEvent = mail, isProtected = false) =>
    wantsNotification({ ...webhook, ...facts }, inboxNotification(event), isProtected)

  it('of an inbox wants the events of that inbox that it subscribes to', () => {
    expect(wants({})).toBe(true)
    expect(wants({}, deleted(minute(2)))).toBe(true)
    expect(wants({}, expired)).toBe(false)
    expect(wants({ inboxId: idFromBytes('inb', Buffer.alloc(16, 9)) })).toBe(false)
  })

  it('of an environment wants the events of every inbox without a password', () => {
    expect(wants({ inboxId: null })).toBe(true)
    expect(wants({ inboxId: null }, mail, true)).toBe(false)
    expect(wants({}, mail, true)).toBe(true)
    expect(wants({ inboxId: null, environment: 'production' })).toBe(false)
    expect(wants({ inboxId: null, accountId: idFromBytes('acc', Buffer.alloc(16, 9)) })).toBe(false)
  })

  it('wants nothing while it is disabled', () => {
    expect(wants({ state: 'disabled' })).toBe(false)
  })

  test.each([
    { partition: 3, offset: 9, wantsNotification: false },
    { partition: 3, offset: 11, wantsNotification: true },
    { partition: 4, offset: 11, wantsNotification: false },
  ])('wants only events after its registration: $partition/$offset', (position) => {
    expect(wantsNotification(webhook, inboxNotification(mail, position), false)).toBe(
      position.wantsNotification,
    )
  })
})

describe('the id of a delivery', () => {
  const { notification } = inboxNotification(mail)
  const replayId = idFromBytes('rpl', Buffer.alloc(16, 1))

  it('depends on the webhook, the event and the replay, and on nothing else', () => {
    const ids = [
      deliveryIdOf(webhookId, notification, null),
      deliveryIdOf(webhookId, notification, replayId),
      deliveryIdOf(idFromBytes('whk', Buffer.alloc(16, 2)), notification, null),
      deliveryIdOf(webhookId, inboxNotification(messageDeleted(minute(2))).notification, null),
      deliveryIdOf(webhookId, inboxNotification(received(minute(1), messageId(9))).notification, null),
    ]
    expect(new Set(ids).size).toBe(5)
    expect(deliveryIdOf(webhookId, { ...notification, occurredAt: minute(7) }, null)).toBe(ids[0])
  })

  it('is the same for a notice of a key that is recorded twice, and differs for each notice and time', () => {
    const notice: KeyNotification = {
      ...{ type: 'key.expiring', keyId: idFromBytes('key', Buffer.alloc(16, 1)), name: 'CI' },
      ...{ inboxId: null, messageId: null, expiresAt: minute(99), daysLeft: 30, occurredAt: minute(1) },
    }
    const idOf = (facts: Partial<KeyNotification>) => deliveryIdOf(webhookId, { ...notice, ...facts }, null)
    expect(idOf({ occurredAt: minute(2) })).toBe(idOf({}))
    expect(new Set([idOf({}), idOf({ daysLeft: 3 }), idOf({ expiresAt: minute(100) })]).size).toBe(3)
  })

  it('is sent to the receiver without the replay, so that the receiver can drop duplicates', () => {
    const [original, replayed] = [null, replayId].map((id) => deliveryIdOf(webhookId, notification, id))
    if (original === undefined || replayed === undefined) throw new Error('no ids')
    expect(notificationIdOf(webhookId, replayed, notification)).toBe(original)
  })
})
