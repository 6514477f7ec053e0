import type { InboxEvent } from '#libs/domain/inbox/events.js'
import { created, deleted, messageDeleted, messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openRedis, type RedisClient } from '#libs/engines/distributed/redis/client/redis-client.js'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { describeOn, redisClusterUrls, redisUrl } from '#test/harness/servers.js'
import {
  followAccounts,
  Follower,
  followerOf,
  inboxIdIn,
  mail,
  makeInbox,
  PARTITIONS,
} from '#libs/ports/read-model/read-model-harness.contract.js'
import {
  deliveryIdOf,
  DeliveryFollower,
  requested,
  webhookIdIn,
} from '#libs/ports/read-model/delivery-follower.contract.js'
import {
  deliveries as deliveryTable,
  historyOrder,
  inboxes,
  messages,
} from '#libs/ports/read-model/tables.js'
import { emptyPartition, ESTABLISH } from './begin-partition.js'
import { CONTENT_SLACK_MS } from './changes.js'
import { viewKeys } from './keys.js'
import { keysUnder, makeReadModel, type RedisHarness } from './redis-read-model-harness.contract.js'

const id = inboxIdIn(1)
const PARTITION = { topic: 'inbox-events', partition: 1 } as const
const hourMs = 3_600_000

describe.each([
  { server: 'redis' as const, urls: () => [redisUrl()] },
  { server: 'redis-cluster' as const, urls: redisClusterUrls },
])('views in $server', ({ server, urls }) => {
  describeOn(server)('steps', () => {
    let client: RedisClient
    let harness: RedisHarness

    beforeAll(async () => {
      client = await openRedis({ urls: urls(), name: 'mayfly-test', onError: () => undefined })
    })
    afterAll(() => client.disconnect())
    beforeEach(() => {
      harness = makeReadModel(client)
    })
    afterEach(() => harness.close())

    /** The names of all keys without the prefix, sorted. */
    async function keys(): Promise<string[]> {
      const found = await keysUnder(client, harness.prefix)
      return found.map((key) => key.slice(harness.prefix.length)).toSorted()
    }

    const ttlMsOf = (name: string) => client.pttl(harness.prefix + name)

    it('list a full page even if messages are removed after their ids were read', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id), ...[1, 2, 3, 4, 5].map((n) => mail(id, messageId(n))))
      const names = viewKeys(harness.prefix, PARTITIONS)
      await client.hdel(names.rows(messages, 1, id), messageId(2), messageId(4))
      for (const order of ['asc', 'desc'] as const) {
        const rows = await harness.queries.listMessages({ inboxId: id, order, from: 0, to: 100, limit: 2 })
        const expected = order === 'asc' ? [messageId(1), messageId(3)] : [messageId(5), messageId(3)]
        expect(rows.map(({ message }) => message.id)).toEqual(expected)
      }
    })

    it('list a full page even if deliveries are removed after their ids were read', async () => {
      const { store, deliveries, prefix } = harness
      const webhookId = webhookIdIn(1)
      const follower = await DeliveryFollower.begin(store, 1)
      await follower.follow(...[1, 2, 3, 4].map((n) => requested(webhookId, n)))
      const rows = viewKeys(prefix, PARTITIONS).rows(deliveryTable, 1, webhookId)
      await client.hdel(rows, deliveryIdOf(1), deliveryIdOf(3))
      const query = { webhookId, state: null, from: 0, to: 100, limit: 2 } as const
      const list = async (order: 'asc' | 'desc') =>
        (await deliveries.listDeliveries({ ...query, order })).map(({ delivery }) => delivery.id)
      expect(await list('asc')).toEqual([2, 4].map(deliveryIdOf))
      expect(await list('desc')).toEqual([4, 2].map(deliveryIdOf))
    })

    it('keep nothing of a step from another position', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id))
      const before = await keys()
      const step = await follower.stepOf(mail(id, messageId(1)), makeInbox(inboxIdIn(1, 7)))
      expect(await harness.store.apply({ ...step, from: 5, to: 7 })).toEqual({ position: 1 })
      expect(await keys()).toEqual(before)
    })

    it('keep only content that expires and is not shown of a step that another one overtook', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id))
      const [one, other] = await Promise.all([1, 2].map((n) => follower.stepOf(mail(id, messageId(n)))))
      if (one === undefined || other === undefined) throw new Error('no steps')
      const outcomes = await Promise.all([harness.store.apply(one), harness.store.apply(other)])
      expect(outcomes).toEqual(['applied', { position: 2 }])
      expect(await ttlMsOf(`{p1}:raw:${messageId(2)}`)).toBeGreaterThan(0)
      expect(await harness.queries.raw({ inboxId: id, messageId: messageId(2) })).toBeNull()
    })

    it('expire content some time after its inbox, and nothing else', async () => {
      const follower = await followerOf(harness.store, 1)
      await followAccounts(harness.store, {
        ...{ type: 'AccountOpened', accountId: created.accountId, name: 'Acme' },
        ...{ plan: 'pro', limits: null, openedAt: minute(0) },
      })
      const step = await follower.stepOf(makeInbox(id, { labels: { run: '1' } }), mail(id, messageId(1)))
      const expiresAt = new Date(Date.now() + hourMs)
      const contents = step.contents.map((content) => ({ ...content, expiresAt }))
      expect(await harness.store.apply({ ...step, contents })).toBe('applied')
      await harness.queries.leaseDue({ now: minute(60), limit: 10 })
      const names = await keys()
      const expiring = names.filter((name) => /:(body|raw):/.test(name))
      expect(expiring).toEqual([`{p1}:body:${messageId(1)}`, `{p1}:raw:${messageId(1)}`])
      for (const name of expiring) {
        const ttlMs = await ttlMsOf(name)
        expect(ttlMs).toBeLessThanOrEqual(hourMs + CONTENT_SLACK_MS)
        expect(ttlMs).toBeGreaterThan(hourMs + CONTENT_SLACK_MS - 60_000)
      }
      const lasting = names.filter((name) => !expiring.includes(name))
      expect(lasting).toEqual(
        [
          ...[
            '{accounts}:account-list',
            '{accounts}:accounts',
            '{accounts}:activity',
            '{accounts}:slot:account-events',
            `address:${makeInbox(id).address}`,
          ],
          ...[
            'account-use-totals',
            'address',
            'due',
            'inbox-activity',
            'inboxes',
            'labels',
            'listing',
            'slot:inbox-events',
          ].map((name) => `{p1}:${name}`),
          ...['messages', 'message-order', 'history'].map((name) => `{p1}:${name}:${id}`),
        ].toSorted(),
      )
      for (const name of lasting) expect({ name, ttlMs: await ttlMsOf(name) }).toEqual({ name, ttlMs: -1 })
    })

    it('keep no content of a deleted message, and only the row, lists and history of an ended inbox', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id), mail(id, messageId(1)), mail(id, messageId(2)))
      await follower.follow({ ...messageDeleted(minute(2), messageId(1)), inboxId: id })
      expect((await keys()).filter((name) => /:(body|raw):/.test(name))).toEqual([
        `{p1}:body:${messageId(2)}`,
        `{p1}:raw:${messageId(2)}`,
      ])
      await follower.follow({ ...deleted(minute(3)), inboxId: id })
      const left = [
        'account-use-totals',
        'address',
        `history:${id}`,
        'inbox-activity',
        'inboxes',
        'listing',
        'slot:inbox-events',
      ].map((name) => `{p1}:${name}`)
      expect(await keys()).toEqual([...left, `address:${makeInbox(id).address}`].toSorted())
    })

    it('apply a step of thousands of changes, and can be emptied again', async () => {
      const follower = await followerOf(harness.store, 1)
      const numbers = Array.from({ length: 1_000 }, (_, n) => n)
      const ids = numbers.map((n) => inboxIdIn(1, n))
      const events: InboxEvent[] = ids.map((inboxId, n) =>
        makeInbox(inboxId, { labels: { n: String(n % 10) } }),
      )
      const mails = ids.map((inboxId, n) => {
        const bytes = Buffer.alloc(16)
        bytes.writeUInt32BE(n)
        return mail(inboxId, idFromBytes('msg', bytes))
      })
      const step = await follower.stepOf(...events, ...mails)
      expect(step.changes).toHaveLength(4_000)
      expect(await follower.follow(...events, ...mails)).toBe('applied')
      const rows = await harness.store.rows(
        inboxes,
        ids.map((key) => ({ owner: null, key })),
      )
      expect(rows.map((row) => row?.inbox.messageCount)).toEqual(numbers.map(() => 1))
      const last = mails.at(-1)
      if (last === undefined) throw new Error('no mail')
      expect(await harness.queries.raw(last)).not.toBeNull()
      const { accountId, environment } = created
      const list = { accountId, environment, state: 'active', order: 'asc', now: minute(1) } as const
      const listed = await harness.queries.listInboxes({
        ...list,
        labels: [['n', '3']],
        after: null,
        limit: 1_000,
      })
      expect(listed.map((inbox) => inbox.id)).toEqual(ids.filter((_, n) => n % 10 === 3))
      // One partition has far more than its share of the page.
      const all = await harness.queries.listInboxes({ ...list, labels: [], after: null, limit: 1_000 })
      expect(all.map((inbox) => inbox.id)).toEqual(ids)

      const addresses = (await keys()).filter((name) => name.startsWith('address:'))
      expect(await follower.begin({ logId: 'another-log', first: 3 })).toBe(3)
      expect(await keys()).toEqual([...addresses, '{p1}:slot:inbox-events'].toSorted())
      expect(await harness.queries.inboxAt(makeInbox(id).address)).toBeNull()
    })

    it('are begun once if several processes begin at once', async () => {
      const follower = await followerOf(harness.store, 1)
      const ids = Array.from({ length: 600 }, (_, n) => inboxIdIn(1, n))
      await follower.follow(...ids.map((inboxId) => makeInbox(inboxId)))
      const rivals = [1, 2, 3].map(async (n) => {
        const rival = new Follower(harness.store, 1)
        await rival.begin({ logId: 'another-log' })
        return rival.follow(makeInbox(inboxIdIn(1, n)))
      })
      const outcomes = await Promise.all(rivals)
      expect(outcomes.filter((outcome) => outcome === 'applied')).toHaveLength(1)
      const rows = await harness.store.rows(
        inboxes,
        ids.map((key) => ({ owner: null, key })),
      )
      expect(rows.filter((row) => row !== null)).toHaveLength(1)
    })

    it('lose nothing to a late process that was emptying them', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id), mail(id, messageId(1)))
      const before = await keys()
      const names = viewKeys(harness.prefix, PARTITIONS)
      expect(await emptyPartition(client, names, PARTITION)).toBe(false)
      const all = [names.progress(PARTITION), ...names.ofPartition(PARTITION)]
      expect(await ESTABLISH.run(client, all, ['another-log', 1, 0, 9])).toBe('begun')
      expect(await keys()).toEqual(before)
      expect(await harness.queries.progress(PARTITION)).toMatchObject({ position: 2 })
    })

    it('are emptied completely by the next process if the first one stopped midway', async () => {
      const follower = await followerOf(harness.store, 1)
      const ids = Array.from({ length: 600 }, (_, n) => inboxIdIn(1, n))
      await follower.follow(...ids.map((inboxId) => makeInbox(inboxId)))
      const names = viewKeys(harness.prefix, PARTITIONS)
      await client.unlink(names.progress(PARTITION))
      await client.hdel(names.rows(inboxes, 1, null), ...ids.slice(0, 300))
      await client.unlink(...ids.slice(0, 300).map((inboxId) => names.entries(historyOrder, 1, [inboxId])))
      expect(await harness.queries.progress(PARTITION)).toBeNull()
      expect(await new Follower(harness.store, 1).begin()).toBe(0)
      expect((await keys()).filter((name) => name.startsWith('{p1}'))).toEqual(['{p1}:slot:inbox-events'])
    })

    it('are empty, and begin at the first record, after Redis has lost everything', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id), mail(id, messageId(1)))
      for (const key of await keysUnder(client, harness.prefix)) await client.unlink(key)
      expect(await harness.queries.progress(PARTITION)).toBeNull()
      expect(await harness.store.apply(await follower.stepOf())).toBe('absent')
      expect(await new Follower(harness.store, 1).begin({ first: 0 })).toBe(0)
    })

    it('continue from the position of an older copy', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id))
      const copy = new Map<string, Buffer | null>()
      for (const key of await keysUnder(client, harness.prefix)) copy.set(key, await client.dumpBuffer(key))
      await follower.follow(mail(id, messageId(1)), makeInbox(inboxIdIn(1, 5)))

      for (const key of await keysUnder(client, harness.prefix)) await client.unlink(key)
      for (const [key, dump] of copy) if (dump !== null) await client.restore(key, 0, dump)
      expect(await follower.follow(mail(id, messageId(2)))).toEqual({ position: 1 })
      const successor = new Follower(harness.store, 1)
      expect(await successor.begin()).toBe(1)
      expect(await successor.follow(mail(id, messageId(1)), makeInbox(inboxIdIn(1, 5)))).toBe('applied')
      expect((await harness.queries.inbox(id))?.inbox.messageCount).toBe(1)
    })

    it('find an address whose entry was lost, and write the entry again', async () => {
      const follower = await followerOf(harness.store, 1)
      await follower.follow(makeInbox(id))
      const { address } = makeInbox(id)
      const entry = `${harness.prefix}address:${address}`
      await client.unlink(entry)
      expect((await harness.queries.inboxAt(address))?.inbox.id).toBe(id)
      expect(await client.get(entry)).toBe(id)
      await client.set(entry, inboxIdIn(2))
      expect((await harness.queries.inboxAt(address))?.inbox.id).toBe(id)
    })
  })
})
