import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { created, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import type { ReplayRequested } from '#libs/domain/webhook/events.js'
import {
  DeliveryFollower,
  moment,
  requested,
  webhookIdIn,
} from '#libs/ports/read-model/delivery-follower.contract.js'
import { describeProjectionStore } from '#libs/ports/read-model/projection-store.contract.js'
import { describeQueries } from '#libs/ports/read-model/queries.contract.js'
import {
  FollowedLog,
  Follower,
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import { closeLmdbFile, openLmdbFile } from '#libs/engines/embedded/lmdb-file/lmdb-file.js'
import { openLmdbReadModel } from './lmdb-view-store.js'

async function makeReadModel() {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
  const views = await openLmdbReadModel(join(dir, 'views.mdb'), PARTITIONS, { log: new FollowedLog() })
  return {
    ...views,
    async close() {
      await views.close()
      await rm(dir, { recursive: true })
    },
  }
}

describeProjectionStore('LMDB', makeReadModel)
describeQueries('LMDB', makeReadModel)

describe('LMDB read model', () => {
  it('counts the messages of labels right after an upgrade from rows without counts', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    const path = join(dir, 'views.mdb')
    const inboxId = inboxIdIn(1)
    const events = [
      makeInbox(inboxId, { labels: { run: '42' }, isProtected: false }),
      mail(inboxId, messageId(1)),
    ]
    const { accountId, environment } = created
    const totals = { accountId, environment, name: 'run', value: '42', now: minute(5) }
    const first = await openLmdbReadModel(path, PARTITIONS)
    await (await followerOf(first.store, 1)).follow(...events)
    await first.close()

    const root = openLmdbFile<unknown, string>({ path, syncMode: 'after-visible', maxDbs: 40 })
    const encoding = { encoder: { useRecords: false } }
    const older = root.openDB<unknown, [number, string]>({ name: 'row-inboxes', ...encoding })
    const row = older.get([1, inboxId]) as { inbox: { receivedCount: number } }
    const { receivedCount: _, ...inbox } = row.inbox
    await root.transaction(() => {
      older.putSync([1, inboxId], { ...row, inbox })
      root.openDB({ name: 'index-label-counts' }).clearSync()
      root.openDB({ name: 'totals-label-counts' }).clearSync()
      root.openDB({ name: 'meta' }).putSync('form', 'an older form')
    })
    await closeLmdbFile(root)

    const views = await openLmdbReadModel(path, PARTITIONS)
    const follower = await followerOf(views.store, 1)
    await follower.follow(...events)
    expect(await views.queries.labelTotals(totals)).toEqual({ inboxes: 1, received: 1 })
    await views.close()
    await rm(dir, { recursive: true })
  })

  it('leases thousands of replays one by one in little time', async () => {
    const views = await makeReadModel()
    const webhookId = webhookIdIn(1)
    const follower = await DeliveryFollower.begin(views.store, 1)
    const requestedAt = moment(0)
    const many = Array.from({ length: 5_000 }, (_, n): ReplayRequested => {
      const bytes = Buffer.alloc(16)
      bytes.writeUInt32BE(n)
      const { accountId, environment } = requested(webhookId, 1)
      const whose = { webhookId, replayId: idFromBytes('rpl', bytes), accountId, environment }
      return {
        type: 'ReplayRequested',
        ...whose,
        selection: { kind: 'existing-mail', since: null },
        requestedAt,
      }
    })
    await follower.follow(...many)
    const claim = () => views.replays.claimReplay({ now: requestedAt, leaseMs: 60_000 })
    const claimed = new Set<string | undefined>()
    for (const _ of many) claimed.add((await claim())?.id)
    expect(claimed.size).toBe(many.length)
    expect(await claim()).toBeNull()
    await views.close()
  }, 30_000)

  it('does not block other requests while it lists many inboxes', async () => {
    const views = await makeReadModel()
    const made = Array.from({ length: 1_200 }, (_, n) =>
      makeInbox(inboxIdIn(1, n), { labels: n % 2 === 0 ? { run: '1' } : { browser: 'none' } }),
    )
    await (await followerOf(views.store, 1)).follow(...made)
    const [{ accountId, environment } = makeInbox(inboxIdIn(1))] = made
    const labels: [string, string][] = [
      ['run', '1'],
      ['browser', 'none'],
    ]
    const order: string[] = []
    const query = { accountId, environment, state: 'active', order: 'asc', after: null, limit: 10 } as const
    const listing = views.queries
      .listInboxes({ ...query, labels, now: minute(1) })
      .then((found) => order.push(`${found.length} found`))
    setImmediate(() => order.push('another request'))
    await listing
    expect(order).toEqual(['another request', '0 found'])
    await views.close()
  })

  it('keeps the views over a restart', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    const path = join(dir, 'views.mdb')
    const id = inboxIdIn(1)
    const before = await openLmdbReadModel(path, PARTITIONS)
    const follower = await followerOf(before.store, 1)
    await follower.follow(makeInbox(id, { labels: { run: '42' } }), mail(id, messageId(1)))
    const row = await before.queries.inbox(id)
    await before.close()
    const after = await openLmdbReadModel(path, PARTITIONS)
    expect(await new Follower(after.store, 1).begin()).toBe(2)
    expect(await after.queries.inbox(id)).toEqual(row)
    expect(await after.queries.raw({ inboxId: id, messageId: messageId(1) })).not.toBeNull()
    await after.close()
    await rm(dir, { recursive: true })
  })
})
