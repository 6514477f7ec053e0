import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { minute } from '#libs/domain/inbox/inbox.test-support.js'
import { accountEventCodec } from './cloud-event.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const keyId = idFromBytes('key', Buffer.alloc(16, 2))

/** A record as the first version of Mayfly wrote it. */
function written(type: string, data: object) {
  const headers = {
    ce_specversion: '1.0',
    ce_id: idFromBytes('evt', Buffer.alloc(16, 3)),
    ce_type: type,
    ce_source: '/mayfly/api',
    ce_subject: accountId,
    ce_time: minute(0).toISOString(),
    ce_accountid: accountId,
    ce_environment: 'development',
    ce_keyid: keyId,
    ce_schemaversion: '1',
    'content-type': 'application/json',
  }
  return { headers, value: Buffer.from(JSON.stringify(data)) }
}

function eventIn(record: ReturnType<typeof written>) {
  const decoded = accountEventCodec.decode(record)
  if (decoded.kind !== 'event') throw new Error(JSON.stringify(decoded))
  return decoded.recorded.event
}

describe('account events of version 1', () => {
  it('decode an opened account without limits of its own', () => {
    const data = {
      account_id: accountId,
      name: 'bootstrap',
      plan: 'enterprise',
      opened_at: minute(0).toISOString(),
    }
    expect(eventIn(written('mayfly.account.opened', data))).toEqual({
      type: 'AccountOpened',
      accountId,
      name: 'bootstrap',
      plan: 'enterprise',
      limits: null,
      openedAt: minute(0),
    })
  })

  it('decode an issued key without a rate limit of its own', () => {
    const data = {
      account_id: accountId,
      key_id: keyId,
      name: 'bootstrap',
      environment: 'development',
      scopes: ['inboxes', 'read', 'audit', 'admin', 'operator'],
      secret_hash: 'ab'.repeat(32),
      prefix: 'mf_d',
      issued_at: minute(0).toISOString(),
    }
    expect(eventIn(written('mayfly.account.api-key-issued', data))).toMatchObject({
      type: 'ApiKeyIssued',
      keyId,
      rateLimit: null,
      secretHash: 'ab'.repeat(32),
    })
  })

  it('are undecodable if the limits of an account are invalid', () => {
    const data = { account_id: accountId, plan: 'pro', limits: { retention: '1y' } }
    const record = written('mayfly.account.plan-changed', { ...data, changed_at: minute(0).toISOString() })
    expect(accountEventCodec.decode(record)).toMatchObject({ kind: 'undecodable' })
  })
})
