import fc from 'fast-check'
import { anyRegistrationEvent } from '#libs/webhook/registration-events.arbitrary.js'
import { idFromBytes } from '#libs/typeid/typeid.js'
import { accountEventCodec } from './account-events.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))

describe('an event of a webhook', () => {
  it('comes back from the log as it went there, under the key of its account', () => {
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
})
