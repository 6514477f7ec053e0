import Type from 'typebox'
import { codec, event, type EventOf } from '#libs/domain/event-sourcing/declare.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { created, deleted, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { EventCodec, inboxEventCodec, type Recorded } from './cloud-event.js'
import type { LogRecord } from './event-log.js'

const about = {
  id: idFromBytes('evt', Buffer.alloc(16, 4)),
  time: minute(5),
  source: '/mayfly/api',
  accountId: created.accountId,
  environment: 'staging',
  keyId: created.keyId,
}

const good = inboxEventCodec.encode({ ...about, event: deleted(minute(3)) })

function withHeaders(headers: Record<string, string>): LogRecord {
  return { ...good, headers: { ...good.headers, ...headers } }
}

function withData(data: string): LogRecord {
  return { ...good, value: Buffer.from(data) }
}

describe('a record that this version can’t decode', () => {
  test.each([
    {
      what: 'a newer schema version',
      headers: { ce_schemaversion: '2' },
      type: good.headers.ce_type,
      version: 2,
    },
    {
      what: 'an unknown type',
      headers: { ce_type: 'mayfly.inbox.moved' },
      type: 'mayfly.inbox.moved',
      version: 1,
    },
  ])('is newer: $what', ({ headers, type, version }) => {
    expect(inboxEventCodec.decode(withHeaders(headers))).toEqual({ kind: 'newer', type, version })
  })

  it('is newer whatever its data is', () => {
    const record = { ...withHeaders({ ce_schemaversion: '2' }), value: Buffer.from('{"not":"ours') }
    expect(inboxEventCodec.decode(record)).toMatchObject({ kind: 'newer' })
  })

  const fields = JSON.parse(Buffer.from(good.value).toString()) as Record<string, unknown>
  test.each([
    {
      what: 'a foreign type',
      record: withHeaders({ ce_type: 'com.example.made' }),
      reason: /com\.example\.made/,
    },
    { what: 'no headers', record: { ...good, headers: {} }, reason: /unknown type ""/ },
    { what: 'no schema version', record: withHeaders({ ce_schemaversion: '' }), reason: /no schema version/ },
    { what: 'version 0', record: withHeaders({ ce_schemaversion: '0' }), reason: /no schema version: "0"/ },
    { what: 'a version that is not a number', record: withHeaders({ ce_schemaversion: 'x' }), reason: /"x"/ },
    { what: 'a broken id', record: withHeaders({ ce_id: 'evt_x' }), reason: /evt_x/ },
    { what: 'a broken account', record: withHeaders({ ce_accountid: 'inb_x' }), reason: /inb_x/ },
    { what: 'a broken key', record: withHeaders({ ce_keyid: 'key_x' }), reason: /key_x/ },
    { what: 'a broken time', record: withHeaders({ ce_time: 'yesterday' }), reason: /yesterday/ },
    {
      what: 'a long environment',
      record: withHeaders({ ce_environment: 'x'.repeat(1_001) }),
      reason: /ce_environment has more than 1000 characters/,
    },
    { what: 'a long actor', record: withHeaders({ ce_actor: 'x'.repeat(70_000) }), reason: /ce_actor/ },
    { what: 'no data', record: withData(''), reason: /./ },
    { what: 'broken JSON', record: withData('{'), reason: /./ },
    { what: 'data of another shape', record: withData('[]'), reason: /does not fit the schema/ },
    {
      what: 'a missing field',
      record: withData(JSON.stringify({ ...fields, key_id: undefined })),
      reason: /does not fit the schema/,
    },
    {
      what: 'another kind of id',
      record: withData(JSON.stringify({ ...fields, key_id: created.inboxId })),
      reason: /key_id/,
    },
    {
      what: 'an invalid time',
      record: withData(JSON.stringify({ ...fields, deleted_at: '2026-02-31' })),
      reason: /deleted_at/,
    },
  ])('is undecodable, with the reason: $what', ({ record, reason }) => {
    const decoded = inboxEventCodec.decode(record)
    expect(decoded).toEqual({ kind: 'undecodable', reason: expect.stringMatching(reason) as unknown })
  })

  it('ignores unknown fields: within a version, fields may be added', () => {
    const record = withData(JSON.stringify({ ...fields, reason: 'tidied up' }))
    expect(inboxEventCodec.decode(record)).toMatchObject({
      kind: 'event',
      recorded: { event: deleted(minute(3)) },
    })
  })
})

/** In version 1 the name was one text. */
const name = codec(
  Type.Union([Type.String(), Type.Object({ first: Type.String(), last: Type.String() })]),
  (value: { first: string; last: string }) => value,
  (data) => {
    if (typeof data === 'object') return data
    const [first = '', last = ''] = data.split(' ')
    return { first, last }
  },
)
const RENAMED = { Renamed: event('test.renamed', { name }, { version: 2 }) }

describe('a record of an older schema version', () => {
  const events = new EventCodec<EventOf<typeof RENAMED>>(RENAMED, () => 'key')
  const recorded: Recorded<EventOf<typeof RENAMED>> = {
    ...about,
    event: { type: 'Renamed', name: { first: 'Ada', last: 'L' } },
  }
  const current = events.encode(recorded)

  it('is decoded as an event of the current version', () => {
    const headers = { ...current.headers, ce_schemaversion: '1' }
    const older = { headers, value: Buffer.from('{"name":"Ada L"}') }
    expect(events.decode(older)).toEqual({ kind: 'event', recorded })
  })

  it('is decoded like one of the current version, unlike one of the next version', () => {
    expect(events.decode(current)).toEqual({ kind: 'event', recorded })
    const next = { ...current, headers: { ...current.headers, ce_schemaversion: '3' } }
    expect(events.decode(next)).toMatchObject({ kind: 'newer', version: 3 })
  })
})
