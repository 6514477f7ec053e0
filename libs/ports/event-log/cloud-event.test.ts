import Type from 'typebox'
import { event, kind, type EventOf } from '#libs/domain/events/declare.js'
import { created, deleted, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { EventCodec, type Recorded, inboxEventCodec } from './cloud-event.js'
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

describe('a record that is no event this version knows', () => {
  test.each([
    {
      what: 'a newer schema version',
      headers: { ce_schemaversion: '2' },
      type: good.headers.ce_type,
      version: 2,
    },
    {
      what: 'a type not heard of',
      headers: { ce_type: 'mayfly.inbox.moved' },
      type: 'mayfly.inbox.moved',
      version: 1,
    },
  ])('is told as newer: $what', ({ headers, type, version }) => {
    expect(inboxEventCodec.decode(withHeaders(headers))).toEqual({ kind: 'newer', type, version })
  })

  it('is told as newer before its data is looked at', () => {
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
    { what: 'a version that is no number', record: withHeaders({ ce_schemaversion: 'x' }), reason: /"x"/ },
    { what: 'a broken id', record: withHeaders({ ce_id: 'evt_x' }), reason: /evt_x/ },
    { what: 'a broken account', record: withHeaders({ ce_accountid: 'inb_x' }), reason: /inb_x/ },
    { what: 'a broken key', record: withHeaders({ ce_keyid: 'key_x' }), reason: /key_x/ },
    { what: 'a broken time', record: withHeaders({ ce_time: 'yesterday' }), reason: /yesterday/ },
    { what: 'no data', record: withData(''), reason: /./ },
    { what: 'broken JSON', record: withData('{'), reason: /./ },
    { what: 'data of another shape', record: withData('[]'), reason: /does not fit the schema/ },
    {
      what: 'a field too few',
      record: withData(JSON.stringify({ ...fields, key_id: undefined })),
      reason: /does not fit the schema/,
    },
    {
      what: 'another kind of id',
      record: withData(JSON.stringify({ ...fields, key_id: created.inboxId })),
      reason: /key_id/,
    },
    {
      what: 'a time that is none',
      record: withData(JSON.stringify({ ...fields, deleted_at: '2026-02-31' })),
      reason: /deleted_at/,
    },
  ])('is undecodable, with the reason: $what', ({ record, reason }) => {
    const decoded = inboxEventCodec.decode(record)
    expect(decoded).toEqual({ kind: 'undecodable', reason: expect.stringMatching(reason) as unknown })
  })

  it('takes data with a field more than it knows: within a version the log only adds', () => {
    const record = withData(JSON.stringify({ ...fields, reason: 'tidied up' }))
    expect(inboxEventCodec.decode(record)).toMatchObject({
      kind: 'event',
      recorded: { event: deleted(minute(3)) },
    })
  })
})

/** Version 1 wrote the name as one text. */
const name = kind(
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
  const codec = new EventCodec<EventOf<typeof RENAMED>>(RENAMED, () => 'key')
  const recorded: Recorded<EventOf<typeof RENAMED>> = {
    ...about,
    event: { type: 'Renamed', name: { first: 'Ada', last: 'L' } },
  }
  const current = codec.encode(recorded)

  it('is brought up to this one', () => {
    const headers = { ...current.headers, ce_schemaversion: '1' }
    const older = { headers, value: Buffer.from('{"name":"Ada L"}') }
    expect(codec.decode(older)).toEqual({ kind: 'event', recorded })
  })

  it('comes out like one of this version, and one of the next version does not', () => {
    expect(codec.decode(current)).toEqual({ kind: 'event', recorded })
    const next = { ...current, headers: { ...current.headers, ce_schemaversion: '3' } }
    expect(codec.decode(next)).toMatchObject({ kind: 'newer', version: 3 })
  })
})
