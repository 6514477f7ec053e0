import { readFile } from 'node:fs/promises'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { CODECS } from './cloud-event.js'
import type { LogRecord } from './event-log.js'
import { EVENT_SCHEMAS } from './event-schemas.js'
import type { LogTopic } from './topics.js'

/** A record and its event. In the JSON file, `$date` is a time and `$bytes` is base64. */
interface GoldenRecord {
  topic: LogTopic
  type: string
  version: string
  contentType: string
  key: string
  event: object
  /** JSON as text, CBOR in base64. */
  value: string
}

interface AnyCodec {
  encode(recorded: never): LogRecord
  decode(record: LogRecord): object
}

const about = {
  id: idFromBytes('evt', Buffer.alloc(16, 9)),
  time: new Date('2026-01-01T00:00:01.007Z'),
  source: '/mayfly/api',
}
const tenant = { accountId: idFromBytes('acc', Buffer.alloc(16, 1)), environment: 'staging', keyId: null }

/** Records of this version and earlier ones. The encoding of an event's current version must not change. */
describe('golden records', () => {
  let records: GoldenRecord[]

  beforeAll(async () => {
    const text = await readFile('libs/ports/event-log/golden-records.json', 'utf8')
    records = JSON.parse(text, revive) as GoldenRecord[]
  })

  it('exist for every type of event', () => {
    expect([...new Set(records.map(({ type }) => type))].toSorted()).toEqual(
      EVENT_SCHEMAS.map(({ type }) => type).toSorted(),
    )
  })

  it('are encoded byte for byte, and decoded to the same events', () => {
    for (const { topic, type, version, contentType, key, event, value } of records) {
      const codec: AnyCodec = CODECS[topic]
      const hasTenant = topic !== 'inbox-keys' && topic !== 'audit-leaves'
      const recorded = { ...about, ...(hasTenant ? tenant : {}), event }
      const isText = contentType === 'application/json'
      const bytes = Buffer.from(value, isText ? 'utf8' : 'base64')
      const record = codec.encode(recorded as never)
      const stored = { ...record, value: bytes, headers: { ...record.headers, ce_schemaversion: version } }
      expect(codec.decode(stored)).toEqual({ kind: 'event', recorded })
      if (version !== String(EVENT_SCHEMAS.find((each) => each.type === type)?.version)) continue
      expect({ type, value: Buffer.from(record.value).toString(isText ? 'utf8' : 'base64') }).toEqual({
        type,
        value,
      })
      expect(record).toMatchObject({
        key,
        headers: { ce_type: type, ce_schemaversion: version, 'content-type': contentType },
      })
    }
  })
})

function revive(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if ('$date' in value) return new Date(String(value.$date))
  if ('$bytes' in value) return Buffer.from(String(value.$bytes), 'base64')
  return value
}
