import { mintId } from '#libs/domain/ids/mint.js'
import { decodeBatch } from './batch-decoding.js'
import { accountEventCodec } from './cloud-event.js'
import type { StoredRecord } from './event-log.js'

const accountId = mintId('acc')

function stored(offset: number, value?: Uint8Array): StoredRecord {
  const event = { type: 'AccountErased', accountId, erasedAt: new Date() } as const
  const occurrence = { id: mintId('evt'), time: new Date(), source: '/mayfly/lifecycle' } as const
  const by = { accountId, environment: 'staging', keyId: null }
  const record = accountEventCodec.encode({ ...occurrence, ...by, event })
  return { ...record, value: value ?? record.value, offset }
}

it('decodes a record once for all consumers that receive it', () => {
  const records = [stored(0), stored(1, Buffer.from('{')), stored(2)]
  const decode = (batch: readonly StoredRecord[], from: number) =>
    decodeBatch(
      accountEventCodec,
      { topic: 'account-events', partition: 0, from, next: 3, records: batch },
      1,
    )
  const one = decode(records, 0)
  const other = decode(records.slice(1), 1)
  expect(one.events.map(({ offset }) => offset)).toEqual([0, 2])
  expect(other.events.map(({ offset }) => offset)).toEqual([2])
  expect(other.events[0]?.recorded).toBe(one.events[1]?.recorded)
  expect(other.undecodable).toEqual(one.undecodable)
})
