import { EVENT_SCHEMAS } from './event-schemas.js'

describe('a written schema', () => {
  it('is plain JSON Schema: all properties are required, with known exceptions, and none is unconstrained', () => {
    for (const { type, schema } of EVENT_SCHEMAS) {
      const { properties = {}, ...rest } = schema as { properties?: Record<string, object> }
      const optional = OPTIONAL.get(type) ?? []
      const required = Object.keys(properties).filter((name) => !optional.includes(name))
      expect(rest).toEqual({ type: 'object', required })
      for (const property of Object.values(properties)) expect(property).not.toEqual({})
      expect(JSON.stringify(schema)).not.toContain('~')
    }
  })
})

const OPTIONAL: ReadonlyMap<string, readonly string[]> = new Map([
  ['mayfly.inbox.created', ['password_protected', 'faults', 'cause']],
  ['mayfly.inbox.changed', ['duration', 'expires_at', 'sealed']],
  ['mayfly.inbox.message-received', ['duplicate_of', 'fingerprint', 'inbox_key_id', 'labels']],
  ['mayfly.inbox.message-deleted', ['inbox_key_id', 'labels']],
  ['mayfly.inbox.expired', ['inbox_key_id', 'labels']],
  ['mayfly.inbox.deleted', ['inbox_key_id', 'labels']],
  ['mayfly.inbox.erased', ['actor', 'inbox_key_id', 'labels']],
  ['mayfly.account.opened', ['limits']],
  ['mayfly.account.plan-changed', ['limits']],
  ['mayfly.account.api-key-issued', ['rate_limit', 'expires_at', 'created_by', 'owner']],
  ['mayfly.account.console-link-created', ['member_id', 'offered_by']],
  ['mayfly.account.console-session-started', ['member_id', 'is_identified']],
  ['mayfly.member.invited', ['environments']],
  ['mayfly.member.joined', ['session', 'identity']],
  ['mayfly.member.changed', ['environments']],
  ['mayfly.account.api-key-rotated', ['expires_at']],
  ['mayfly.account.quota-set', ['limit']],
  ['mayfly.webhook.registered', ['inbox_id']],
  ['mayfly.audit-checkpoint.taken', ['awaits_witnesses']],
  ['mayfly.webhook.changed', ['url', 'events', 'state']],
  ['mayfly.domain.changed', ['subdomains', 'catch_all']],
  ['mayfly.webhook.delivery-requested', ['replay_id']],
  ['mayfly.webhook.delivery-succeeded', ['answer']],
  ['mayfly.webhook.delivery-failed', ['answer', 'status', 'next_attempt_at']],
  ['mayfly.webhook.replay-advanced', ['next']],
  ['mayfly.usage.api-request-served', ['count', 'inbox_id']],
  ['mayfly.usage.mail-accepted', ['duplicate_of']],
  ['mayfly.usage.message-shown', ['visible_ms', 'received_at']],
])
