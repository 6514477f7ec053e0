import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageId } from '#libs/inbox/given-when-then.js'
import { describeProjectionStore } from '../projection-store.contract.js'
import { describeQueries } from '../queries.contract.js'
import { Follower, followerOf, inboxIdIn, mail, makeInbox } from '../read-model-harness.contract.js'
import { openLmdbReadModel } from './lmdb-read-model.js'

async function makeReadModel() {
  const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
  const views = await openLmdbReadModel(join(dir, 'views.mdb'))
  return {
    store: views.store,
    queries: views.queries,
    accounts: views.accounts,
    deliveries: views.deliveries,
    replays: views.replays,
    webhooks: views.webhooks,
    async close() {
      await views.close()
      await rm(dir, { recursive: true })
    },
  }
}

describeProjectionStore('LMDB', makeReadModel)
describeQueries('LMDB', makeReadModel)

describe('LMDB read model', () => {
  it('goes on after a restart with what it held', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mayfly-views-'))
    const path = join(dir, 'views.mdb')
    const id = inboxIdIn(1)
    const before = await openLmdbReadModel(path)
    const follower = await followerOf(before.store, 1)
    await follower.follow(makeInbox(id, { labels: { run: '42' } }), mail(id, messageId(1)))
    const row = await before.queries.inbox(id)
    await before.close()
    const after = await openLmdbReadModel(path)
    expect(await new Follower(after.store, 1).begin()).toBe(2)
    expect(await after.queries.inbox(id)).toEqual(row)
    expect(await after.queries.raw({ inboxId: id, messageId: messageId(1) })).not.toBeNull()
    await after.close()
    await rm(dir, { recursive: true })
  })
})
