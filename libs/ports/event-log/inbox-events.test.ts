import fc from 'fast-check'
import { anyAccountEvent } from '#libs/domain/account/account.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { InboxEvent } from '#libs/domain/inbox/events.js'
import {
  anyId,
  anyInboxEvent,
  anyTime,
  changed,
  created,
  deleted,
  expired,
  messageDeleted,
  minute,
  received,
  tokenId,
  tokenIssued,
  tokenRevoked,
} from '#libs/domain/inbox/inbox.test-support.js'
import { anyDeliveryEvent, anyReplayEvent } from '#libs/domain/webhook/delivery.test-support.js'
import type { DeliveryEvent } from '#libs/domain/webhook/events.js'
import { accountEventCodec, inboxEventCodec, webhookEventCodec, type Recorded } from './cloud-event.js'

function anyRecorded<Event>(event: fc.Arbitrary<Event>): fc.Arbitrary<Recorded<Event>> {
  return fc.record({
    id: anyId('evt'),
    time: anyTime,
    source: fc.constantFrom('/mayfly/api', '/mayfly/smtp', '/mayfly/lifecycle'),
    accountId: anyId('acc'),
    environment: fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/),
    keyId: fc.option(anyId('key')),
    event,
  })
}

describe('every event is unchanged after encoding and decoding', () => {
  it('of an inbox', () => {
    fc.assert(
      fc.property(anyRecorded(anyInboxEvent), (recorded) => {
        expect(inboxEventCodec.decode(inboxEventCodec.encode(recorded))).toEqual({ kind: 'event', recorded })
      }),
    )
  })

  it('of an account', () => {
    fc.assert(
      fc.property(anyRecorded(anyAccountEvent), (recorded) => {
        const decoded = accountEventCodec.decode(accountEventCodec.encode(recorded))
        expect(decoded).toEqual({ kind: 'event', recorded })
      }),
    )
  })

  it('of a delivery', () => {
    fc.assert(
      fc.property(anyRecorded(anyDeliveryEvent), (recorded) => {
        const decoded = webhookEventCodec.decode(webhookEventCodec.encode(recorded))
        expect(decoded).toEqual({
          kind: 'event',
          recorded: { ...recorded, event: withBuffer(recorded.event) },
        })
      }),
    )
  })

  it('of a replay', () => {
    fc.assert(
      fc.property(anyRecorded(anyReplayEvent), (recorded) => {
        const decoded = webhookEventCodec.decode(webhookEventCodec.encode(recorded))
        expect(decoded).toEqual({ kind: 'event', recorded })
      }),
    )
  })

  it('with its times to the millisecond', () => {
    fc.assert(
      fc.property(anyRecorded(fc.constant(received(minute(1)))), anyTime, (recorded, receivedAt) => {
        const event: InboxEvent = { ...recorded.event, receivedAt }
        const decoded = inboxEventCodec.decode(inboxEventCodec.encode({ ...recorded, event }))
        expect(decoded).toEqual({ kind: 'event', recorded: { ...recorded, event } })
      }),
    )
  })
})

/** toEqual compares the class of byte arrays too. */
function withBuffer(event: DeliveryEvent): DeliveryEvent {
  if (!('answer' in event) || event.answer === null) return event
  return { ...event, answer: Buffer.from(event.answer) }
}

const id = idFromBytes('evt', Buffer.alloc(16, 4))
const { accountId, keyId, inboxId } = created

describe('the record of an event', () => {
  test.each([
    { event: created, type: 'mayfly.inbox.created', contentType: 'application/json' },
    { event: changed(minute(1)), type: 'mayfly.inbox.changed', contentType: 'application/json' },
    { event: tokenIssued(minute(1)), type: 'mayfly.inbox.token-issued', contentType: 'application/json' },
    { event: tokenRevoked(minute(2)), type: 'mayfly.inbox.token-revoked', contentType: 'application/json' },
    { event: received(minute(1)), type: 'mayfly.inbox.message-received', contentType: 'application/cbor' },
    {
      event: messageDeleted(minute(2)),
      type: 'mayfly.inbox.message-deleted',
      contentType: 'application/json',
    },
    { event: expired, type: 'mayfly.inbox.expired', contentType: 'application/json' },
    { event: deleted(minute(3)), type: 'mayfly.inbox.deleted', contentType: 'application/json' },
  ])('$type has exactly the attributes of CloudEvents', ({ event, type, contentType }) => {
    const time = minute(5)
    const about = { id, time, source: '/mayfly/api', accountId, environment: 'staging', keyId }
    const record = inboxEventCodec.encode({ ...about, event })
    expect(record.key).toBe(inboxId)
    expect(record.headers).toEqual({
      ce_specversion: '1.0',
      ce_id: id,
      ce_type: type,
      ce_source: '/mayfly/api',
      ce_subject: inboxId,
      ce_time: '2026-01-01T00:05:00.000Z',
      ce_accountid: accountId,
      ce_environment: 'staging',
      ce_keyid: keyId,
      ce_schemaversion: '1',
      'content-type': contentType,
    })
  })

  it('has the actor if the key itself did not cause the event', () => {
    const about = { id, time: minute(5), source: '/mayfly/api', accountId, environment: 'staging', keyId }
    const recorded = { ...about, actor: tokenId(1), event: deleted(minute(3)) }
    const record = inboxEventCodec.encode(recorded)
    expect(record.headers).toMatchObject({ ce_keyid: keyId, ce_actor: tokenId(1) })
    expect(inboxEventCodec.decode(record)).toEqual({ kind: 'event', recorded })
  })

  it('has no key attribute if no key caused the event', () => {
    const about = { id, time: minute(5), source: '/mayfly/lifecycle', accountId, environment: 'staging' }
    const { headers } = inboxEventCodec.encode({ ...about, keyId: null, event: expired })
    expect(headers).not.toHaveProperty('ce_keyid')
  })

  it('of an inbox that was created before passwords existed has none', () => {
    const about = { id, time: minute(5), source: '/mayfly/api', accountId, environment: 'staging', keyId }
    const { headers, value } = inboxEventCodec.encode({ ...about, event: created })
    const data = JSON.parse(Buffer.from(value).toString()) as Record<string, unknown>
    expect(data.password_protected).toBe(true)
    const { password_protected: _, ...older } = data
    expect(inboxEventCodec.decode({ headers, value: Buffer.from(JSON.stringify(older)) })).toMatchObject({
      kind: 'event',
      recorded: { event: { ...created, isProtected: false } },
    })
  })

  test.each([received(minute(1)), messageDeleted(minute(2)), expired, deleted(minute(3))])(
    'of an inbox from before usage was counted decodes: $type',
    (event) => {
      const about = { id, time: minute(5), source: '/mayfly/api', accountId, environment: 'staging', keyId }
      const older = { ...event, inbox: null }
      const record = inboxEventCodec.encode({ ...about, event: older })
      expect(Buffer.from(record.value).toString('latin1')).not.toMatch(/inbox_key_id|labels/)
      expect(inboxEventCodec.decode(record)).toMatchObject({ kind: 'event', recorded: { event: older } })
    },
  )

  it('is not much larger than the mail in it', () => {
    const sealed = Buffer.alloc(1 << 20, 7)
    const about = { id, time: minute(5), source: '/mayfly/smtp', accountId, environment: 'staging', keyId }
    const { value } = inboxEventCodec.encode({ ...about, event: { ...received(minute(1)), sealed } })
    expect(value.length).toBeLessThan(sealed.length + 512)
  })
})
