import fc from 'fast-check'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { anyRegistrationEvent } from '#libs/domain/webhook/webhook.test-support.js'
import { accountEventCodec } from './cloud-event.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))

describe('an event of a webhook', () => {
  it('is unchanged after encoding and decoding, with its account as the record key', () => {
    fc.assert(
      fc.property(anyRegistrationEvent(fc.constant(accountId)), (event) => {
        const attributes = { accountId, environment: 'staging', keyId: null, source: '/mayfly/api' }
        const recorded = {
          ...attributes,
          id: idFromBytes('evt', Buffer.alloc(16, 2)),
          time: new Date(0),
          event,
        }
        const record = accountEventCodec.encode(recorded)
        expect(record.key).toBe(accountId)
        expect(accountEventCodec.decode(record)).toEqual({ kind: 'event', recorded })
      }),
    )
  })

  test.each([
    {
      what: 'a registration',
      name: 'mayfly.webhook.registered',
      data: {
        environment: 'staging',
        url: 'https://ci.example/mail?token=1',
        events: ['message.received'],
        secret: { master_key_id: '0123456789abcdef', sealed: 'AAAA' },
        start_from: 'now',
        positions: [],
        registered_at: '2026-01-01T00:00:00.000Z',
      },
    },
    {
      what: 'a change',
      name: 'mayfly.webhook.changed',
      data: { url: 'https://ci.example/mail?token=1', changed_at: '2026-01-01T00:00:00.000Z' },
    },
  ])('may have a plain URL, as $what that was recorded before URLs were sealed', ({ name, data }) => {
    const webhookId = idFromBytes('whk', Buffer.alloc(16, 3))
    const record = accountEventCodec.encode({
      ...{ accountId, environment: 'staging', keyId: null, source: '/mayfly/api' },
      ...{ id: idFromBytes('evt', Buffer.alloc(16, 2)), time: new Date(0) },
      event: { type: 'WebhookRemoved', accountId, webhookId, removedAt: new Date(0) },
    })
    const old = {
      ...record,
      headers: { ...record.headers, ce_type: name },
      value: Buffer.from(JSON.stringify({ account_id: accountId, webhook_id: webhookId, ...data })),
    }
    expect(accountEventCodec.decode(old)).toMatchObject({
      kind: 'event',
      recorded: { event: { webhookId, url: 'https://ci.example/mail?token=1' } },
    })
  })
})
