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
  if (found === undefined) throw new Error('nobody is told of it')
  return found
}

const mail = received(minute(1))

describe('what webhooks are told of', () => {
  test.each([
    { event: mail, type: 'message.received', at: minute(1) },
    { event: messageDeleted(minute(2)), type: 'message.deleted', at: minute(2) },
    { event: expired, type: 'inbox.expired', at: minute(30) },
    { event: deleted(minute(4)), type: 'inbox.deleted', at: minute(4) },
  ])('is $type, as of when it happened', ({ event, type, at }) => {
    expect(inboxNotification(event).notification).toMatchObject({ type, inboxId: INBOX_ID, occurredAt: at })
  })

  it('is not that an inbox was made', () => {
    expect(() => inboxNotification(created)).toThrow('nobody')
  })
})

describe('a webhook', () => {
  const isToldOf = (facts: Partial<Webhook>, event: InboxEvent = mail, isProtected = false) =>
    wantsNotification({ ...webhook, ...facts }, inboxNotification(event), isProtected)

  it('is told of its inbox’s events that it asked for', () => {
    expect(isToldOf({})).toBe(true)
    expect(isToldOf({}, deleted(minute(2)))).toBe(true)
    expect(isToldOf({}, expired)).toBe(false)
    expect(isToldOf({ inboxId: idFromBytes('inb', Buffer.alloc(16, 9)) })).toBe(false)
  })

  it('of an environment is told of each of its inboxes, but of those with a password', () => {
    expect(isToldOf({ inboxId: null })).toBe(true)
    expect(isToldOf({ inboxId: null }, mail, true)).toBe(false)
    expect(isToldOf({}, mail, true)).toBe(true)
    expect(isToldOf({ inboxId: null, environment: 'production' })).toBe(false)
    expect(isToldOf({ inboxId: null, accountId: idFromBytes('acc', Buffer.alloc(16, 9)) })).toBe(false)
  })

  it('is told nothing while it is disabled', () => {
    expect(isToldOf({ state: 'disabled' })).toBe(false)
  })

  test.each([
    { partition: 3, offset: 9, wantsNotification: false },
    { partition: 3, offset: 11, wantsNotification: true },
    { partition: 4, offset: 11, wantsNotification: false },
  ])('is told what came behind its registration: $partition/$offset', (position) => {
    expect(wantsNotification(webhook, inboxNotification(mail, position), false)).toBe(
      position.wantsNotification,
    )
  })
})

describe('the id of a delivery', () => {
  const { notification } = inboxNotification(mail)
  const replayId = idFromBytes('rpl', Buffer.alloc(16, 1))

  it('is the same for the same webhook, event and replay, and for no others', () => {
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

  it('is told to the receiver without the replay: repeats are dropped by it', () => {
    const [told, replayed] = [null, replayId].map((id) => deliveryIdOf(webhookId, notification, id))
    if (told === undefined || replayed === undefined) throw new Error('no ids')
    expect(notificationIdOf(webhookId, replayed, notification)).toBe(told)
  })
})
