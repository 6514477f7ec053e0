import { logIdOf, writeLeaf, type Leaf } from '#libs/domain/audit/leaf.js'
import { hashOfLeaf } from '#libs/domain/audit/tree.js'
import { idFromBytes, type AccountId, type LogId } from '#libs/domain/ids/typeid.js'
import { layoutOf } from '#libs/ports/event-log/event-log-harness.contract.js'
import { partitionOf } from '#libs/ports/event-log/topics.js'
import { auditLogsBefore, projectAuditEvents } from './projections.js'
import { LOG_ID, PARTITIONS, type ReadModelHarness } from './read-model-harness.contract.js'
import { beginViews, type ViewStore } from './view-store.js'

const accountId: AccountId = idFromBytes('acc', Buffer.alloc(16, 9))
const logId = logIdOf(accountId)
const eventIdOf = (n: number) => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(n)
  return idFromBytes('evt', bytes)
}

const leafOf = (offset: number, id = eventIdOf(offset)): Leaf => ({
  ...{ topic: 'inbox-events', partition: 0, offset, id, environment: 'staging', actor: null },
  ...{ subject: 'inb', time: new Date(0), type: 'mayfly.a', recordSha256: 'a'.repeat(64) },
})

const LEAVES = Array.from({ length: 300 }, (_, offset) => leafOf(offset))
const TEXTS = LEAVES.map(writeLeaf)

/** Applies events of one log from the first offset, one per step. */
async function followLog(
  store: ViewStore,
  of: LogId,
  ...events: ({ leaves: Leaf[] } | { size: number; takenAtMs: number })[]
): Promise<void> {
  const partition = partitionOf(of, PARTITIONS)
  const range = { topic: 'audit-leaves', partition, first: 0, end: events.length } as const
  const log = layoutOf({ topology: () => Promise.resolve({ logId: LOG_ID, partitions: [range] }) })
  let { offset: from } = await beginViews(store, log, range)
  for (const fields of events) {
    const event =
      'leaves' in fields
        ? ({ type: 'LeavesSequenced', logId: of, ...fields } as const)
        : ({
            type: 'CheckpointTaken',
            logId: of,
            root: 'root',
            size: fields.size,
            takenAt: new Date(fields.takenAtMs),
            awaitsWitnesses: false,
          } as const)
    const changes = projectAuditEvents(await auditLogsBefore(store, [event]), [event])
    await store.apply({ topic: 'audit-leaves', partition, from, to: from + 1, changes, contents: [] })
    from += 1
  }
}

/** The contract of queries of audit logs. */
export function describeAuditQueries(harness: () => ReadModelHarness): void {
  it('find the leaves of an audit log by their index and their event', async () => {
    const { store, audit } = harness()
    await followLog(store, logId, { leaves: LEAVES.slice(0, 200) }, { leaves: LEAVES.slice(150) })
    expect(await audit.log(logId)).toMatchObject({
      tree: { size: 300 },
      sequencedTo: { 'inbox-events/0': 299 },
    })
    const range = { from: 9, to: 290, limit: 2 }
    expect(await audit.leaves(logId, { ...range, order: 'asc' })).toEqual([
      { index: 9, text: TEXTS[9] },
      { index: 10, text: TEXTS[10] },
    ])
    expect((await audit.leaves(logId, { ...range, order: 'desc' })).map(({ index }) => index)).toEqual([
      289, 288,
    ])
    expect(await audit.leafOf(logId, eventIdOf(7))).toBe(7)
    expect(await audit.leafOf(logId, eventIdOf(300))).toBeNull()
    const other = logIdOf(idFromBytes('acc', Buffer.alloc(16, 3)))
    expect(await audit.log(other)).toBeNull()
    expect(await audit.leaves(other, { ...range, order: 'asc' })).toEqual([])
  })

  it('find the first leaf of an event whose record was written twice', async () => {
    const { store, audit } = harness()
    await followLog(store, logId, { leaves: [leafOf(0), leafOf(1), leafOf(2, eventIdOf(0))] })
    expect(await audit.leafOf(logId, eventIdOf(0))).toBe(0)
  })

  it('have the hashes of tiles and of full subtrees', async () => {
    const { store, audit } = harness()
    await followLog(store, logId, { leaves: LEAVES })
    const [lowest, above] = await audit.hashes(logId, [
      { level: 0, from: 256, to: 300 },
      { level: 1, from: 0, to: 1 },
    ])
    expect(lowest).toEqual(TEXTS.slice(256).map((text) => hashOfLeaf(text)))
    const [whole, leaf] = await audit.subtreeHashes(logId, [
      { height: 8, index: 0 },
      { height: 0, index: 299 },
    ])
    expect(above).toEqual([whole])
    expect(leaf).toEqual(hashOfLeaf(TEXTS[299] ?? ''))
  })

  it('find the last checkpoint that is not after a time', async () => {
    const { store, audit } = harness()
    await followLog(
      store,
      logId,
      { leaves: LEAVES.slice(0, 20) },
      { size: 15, takenAtMs: 10_000 },
      { size: 20, takenAtMs: 20_000 },
      // Of another process, whose views were behind.
      { size: 18, takenAtMs: 20_500 },
      { size: 20, takenAtMs: 600_000 },
    )
    const times = [-1, 9_999, 10_000, 19_999, 20_000, 30_000, 600_000, 2 ** 42]
    const sizes = await Promise.all(times.map((time) => audit.sizeAt(logId, new Date(time))))
    expect(sizes).toEqual([null, null, 15, 15, 20, 20, 20, 20])
  })

  it('lease the logs that are due for a checkpoint', async () => {
    const { store, audit } = harness()
    const lease = (nowMs: number) => audit.leaseDue({ now: new Date(nowMs), leaseMs: 5_000, limit: 10 })
    await followLog(store, logId, { leaves: [leafOf(0)] })
    expect(await lease(1_000)).toMatchObject([{ id: logId, tree: { size: 1 }, checkpoint: null }])
    expect(await lease(2_000)).toEqual([])
    expect(await lease(6_001)).toHaveLength(1)
  })

  it('have no log that is due if its checkpoint has all of it, or is new', async () => {
    const { store, audit } = harness()
    const taken = { size: 1, takenAtMs: 20_000 }
    await followLog(
      store,
      logId,
      { leaves: [leafOf(0)] },
      taken,
      { leaves: [leafOf(1)] },
      { leaves: [leafOf(1)] },
    )
    const lease = (nowMs: number) => audit.leaseDue({ now: new Date(nowMs), leaseMs: 5_000, limit: 10 })
    expect(await lease(29_999)).toEqual([])
    expect(await lease(30_000)).toMatchObject([{ tree: { size: 2 }, checkpoint: { size: 1, root: 'root' } }])
  })
}
