import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { leafHash, merkleTreeHash, verifyCheckpoint } from '#test/harness/transparency-log.js'
import { checkpointDueAt, evolve, type AuditLog } from './audit-log.js'
import { signCheckpoint, signingKey, verifierKey } from './checkpoint.js'
import { digestOf, logIdOf, originOf, readLeaf, writeLeaf, writeRecord, type Leaf } from './leaf.js'
import { rootOf } from './tree.js'

const accountId = idFromBytes('acc', Buffer.alloc(16, 1))
const logId = logIdOf(accountId)

const leafAt = (partition: number, offset: number): Leaf => ({
  ...{ topic: 'inbox-events', partition, offset, environment: 'staging', actor: null },
  id: idFromBytes('evt', Buffer.alloc(16, offset)),
  ...{ subject: 'inb_01jd6b8w0mf2ja3yz5c7e9g1hk', time: new Date('2026-11-21T09:30:02.417Z') },
  ...{ type: 'mayfly.inbox.created', recordSha256: '0'.repeat(64) },
})

const sequenced = (...leaves: Leaf[]) => ({ type: 'LeavesSequenced', logId, leaves }) as const

function logOf(...events: Parameters<typeof evolve>[1][]): AuditLog {
  const log = events.reduce<AuditLog | null>((before, event) => evolve(before, event).log, null)
  if (log === null) throw new Error('there are no events')
  return log
}

describe('an audit log', () => {
  it('has one leaf for each event, in the order in which they were sequenced, however often that was', () => {
    const [one, two, three, other] = [leafAt(0, 3), leafAt(0, 5), leafAt(0, 8), leafAt(1, 4)]
    const log = logOf(
      sequenced(one, two),
      sequenced(two, other, one),
      sequenced(one, two, three),
      sequenced(other),
    )
    expect(log.tree.size).toBe(4)
    expect(rootOf(log.tree)).toEqual(
      merkleTreeHash([one, two, other, three].map((leaf) => leafHash(writeLeaf(leaf)))),
    )
    expect(log.sequencedTo).toEqual({ 'inbox-events/0': 8, 'inbox-events/1': 4 })
    const repeated = evolve(log, sequenced(one, other))
    expect(repeated.log).toBe(log)
    expect(repeated.added).toEqual([])
  })

  it('keeps the last checkpoint of its largest size, and none of a size that it does not have', () => {
    const log = logOf(sequenced(leafAt(0, 1), leafAt(0, 2)))
    const taken = (size: number, second: number) =>
      ({
        type: 'CheckpointTaken',
        logId,
        size,
        root: `root ${second}`,
        takenAt: new Date(second),
        awaitsWitnesses: false,
      }) as const
    const after = (...events: ReturnType<typeof taken>[]) =>
      events.reduce((before, event) => evolve(before, event).log, log).checkpoint?.root
    expect(after(taken(2, 1), taken(1, 2))).toBe('root 1')
    expect(after(taken(1, 1), taken(2, 2), taken(2, 3))).toBe('root 3')
    expect(after(taken(3, 1))).toBeUndefined()
  })

  it('is due for a checkpoint once it has grown, ten seconds after the one before', () => {
    const log = logOf(sequenced(leafAt(0, 1)))
    expect(checkpointDueAt(log)).toEqual(new Date(0))
    const at = new Date('2026-11-21T09:30:00.000Z')
    const checkpoint = { logId, size: 1, root: '', takenAt: at }
    const taken = { type: 'CheckpointTaken', ...checkpoint, awaitsWitnesses: false } as const
    expect(checkpointDueAt(evolve(log, taken).log)).toBeNull()
    const grown = evolve(evolve(log, taken).log, sequenced(leafAt(0, 2))).log
    expect(checkpointDueAt(grown)).toEqual(new Date('2026-11-21T09:30:10.000Z'))
    const awaiting = evolve(log, { ...taken, awaitsWitnesses: true }).log
    expect(checkpointDueAt(awaiting)).toEqual(new Date('2026-11-21T09:30:10.000Z'))
    const cosigned = { type: 'CheckpointCosigned', ...checkpoint, cosignatures: [] } as const
    expect(checkpointDueAt(evolve(awaiting, cosigned).log)).toBeNull()
  })

  it('has leaves that are read as they were written', () => {
    const leaf = leafAt(3, 1)
    expect(readLeaf(writeLeaf(leaf))).toEqual(leaf)
  })

  it('has the digest of a record, in canonical JSON', () => {
    const record = {
      key: 'inb',
      headers: { ce_type: 'a', 'content-type': 'b' },
      value: Buffer.from([255, 0]),
    }
    expect(writeRecord(record)).toBe(
      '{"headers":{"ce_type":"a","content-type":"b"},"key":"inb","value":"/wA="}',
    )
    const bytes = new Uint8Array([1, 255, 0, 2]).subarray(1, 3)
    const other = { key: '"é"', headers: { é: '\n', ['__proto__']: 'a', Z: '' }, value: bytes }
    expect(writeRecord(other)).toBe(
      String.raw`{"headers":{"Z":"","__proto__":"a","é":"\n"},"key":"\"é\"","value":"/wA="}`,
    )
    const headers = { 'content-type': 'b', ce_type: 'a' }
    expect(digestOf({ ...record, headers })).toBe(digestOf(record))
    expect(digestOf({ ...record, value: Buffer.from([255, 1]) })).not.toBe(digestOf(record))
  })
})

describe('a checkpoint', () => {
  const origin = originOf('https://mayfly.example.com', logId)
  const root = Buffer.alloc(32, 7)
  const now = new Date('2026-11-21T09:30:02.417Z')
  const [current, earlier] = [signingKey(Buffer.alloc(32, 1)), signingKey(Buffer.alloc(32, 2))]
  const note = signCheckpoint(origin, { size: 5, root: root.toString('base64') }, [current, earlier], now)

  it('is signed and cosigned by each key, under the origin', () => {
    expect(origin).toBe(`mayfly.example.com/v1/audit/logs/${logId}`)
    const expected = { origin, size: 5, root, cosignedAt: Math.ceil(now.getTime() / 1000) }
    expect(verifyCheckpoint(note, verifierKey(origin, current))).toEqual(expected)
    expect(verifyCheckpoint(note, verifierKey(origin, earlier))).toEqual(expected)
  })

  it('is refused if another key has signed it, or it was altered', () => {
    const foreign = verifierKey(origin, signingKey(Buffer.alloc(32, 3)))
    expect(() => verifyCheckpoint(note, foreign)).toThrow('there is no signature of type')
    const altered = note.replace('\n5\n', '\n6\n')
    expect(() => verifyCheckpoint(altered, verifierKey(origin, current))).toThrow('a signature is wrong')
  })

  it('has the key of RFC 8032, test 1', () => {
    const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')
    const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
    expect(signingKey(seed).publicKey.toString('hex')).toBe(publicKey)
  })
})
