import { Redis } from 'ioredis'
import { messageId, minute } from '#libs/domain/inbox/inbox.test-support.js'
import { openRedis } from '#libs/engines/distributed/redis/client/redis-client.js'
import {
  DeliveryFollower,
  moment,
  requested,
  webhookIdIn,
} from '#libs/ports/read-model/delivery-follower.contract.js'
import { followerOf, inboxIdIn, mail, makeInbox } from '#libs/ports/read-model/read-model-harness.contract.js'
import { describeOn, redisUrl } from '#test/harness/servers.js'
import { makeReadModel, type RedisHarness } from './redis-read-model-harness.contract.js'

const inboxId = inboxIdIn(1)
const webhookId = webhookIdIn(1)
const key = { inboxId, messageId: messageId(1) }
const { accountId, environment, address } = makeInbox(inboxId)
const owner = { accountId, environment }
const offsets = { order: 'asc', from: 0, to: 100, limit: 10 } as const
const list = { ...owner, order: 'asc', after: null, limit: 10, now: minute(1) } as const
const lease = { now: moment(0), leaseMs: 1_000, limit: 10 }

describeOn('redis')('queries of the views', () => {
  let client: Redis
  let harness: RedisHarness
  let waiting = 0
  let roundTrips = 0

  beforeAll(async () => {
    const opened = await openRedis({ urls: [redisUrl()], name: 'mayfly-test', onError: () => undefined })
    if (!(opened instanceof Redis)) throw new Error('the suite counts the commands of one node')
    client = opened
    harness = makeReadModel(client)
    const events = [makeInbox(inboxId, { labels: { run: '1', shard: 'a' } }), mail(inboxId, messageId(1))]
    for (const partition of [0, 1, 2, 3]) await followerOf(harness.store, partition)
    await (await followerOf(harness.store, 1)).follow(...events)
    await (await DeliveryFollower.begin(harness.store, 1)).follow(requested(webhookId, 1))
    const send = client.sendCommand.bind(client)
    client.sendCommand = (...sent: Parameters<typeof send>) => {
      const [{ promise }] = sent
      // Commands that are sent while others wait for their answers belong to the same round trip.
      if (waiting === 0) roundTrips += 1
      waiting += 1
      const isAnswered = () => (waiting -= 1)
      promise.then(isAnswered, isAnswered)
      return send(...sent)
    }
  })
  afterAll(async () => {
    await harness.close()
    client.disconnect()
  })

  test.each<[name: string, atMost: number, query: () => Promise<unknown>]>([
    ['an inbox', 1, () => harness.queries.inbox(inboxId)],
    ['an inbox by its address', 2, () => harness.queries.inboxAt(address)],
    ['active inboxes', 2, () => harness.queries.listInboxes({ ...list, state: 'active', labels: [] })],
    ['expired inboxes', 3, () => harness.queries.listInboxes({ ...list, state: 'expired', labels: [] })],
    [
      'inboxes with two labels',
      3,
      () =>
        harness.queries.listInboxes({
          ...list,
          state: 'active',
          labels: [
            ['run', '1'],
            ['shard', 'a'],
          ],
        }),
    ],
    ['a message', 1, () => harness.queries.message(key)],
    ['the source of a message', 1, () => harness.queries.raw(key)],
    ['messages', 1, () => harness.queries.listMessages({ inboxId, ...offsets })],
    ['the history', 1, () => harness.queries.history({ inboxId, ...offsets })],
    [
      'the mail of an environment',
      1,
      () => harness.queries.listEnvironmentMessages({ ...owner, partition: 1, ...offsets }),
    ],
    [
      'the endings of an environment',
      2,
      () => harness.queries.listEnvironmentEvents({ ...owner, partition: 1, ...offsets }),
    ],
    [
      'the totals of a label',
      1,
      () => harness.queries.labelTotals({ ...owner, name: 'run', value: '1', now: minute(1) }),
    ],
    ['a key by its hash', 2, () => harness.accounts.keyByHash('a'.repeat(64))],
    ['the activity of an account', 1, () => harness.accounts.activity(accountId, offsets)],
    [
      'the activity of inboxes',
      2,
      () => harness.queries.inboxActivity({ accountId, partition: 1, ...offsets }),
    ],
    ['members by their identity', 1, () => harness.accounts.people('active', ['a'.repeat(64)])],
    ['keys', 1, () => harness.accounts.listKeys(accountId, { order: 'asc', after: null, limit: 10 })],
    ['webhooks for inboxes', 1, () => harness.webhooks.webhooksFor([{ inboxId, accountId, environment }])],
    ['deliveries', 1, () => harness.deliveries.listDeliveries({ webhookId, state: null, ...offsets })],
    ['due deliveries', 1, () => harness.deliveries.claimOf(webhookId, lease)],
    ['due inboxes', 2, () => harness.queries.leaseDue({ now: lease.now, limit: lease.limit })],
  ])('for %s take at most %i round trips', async (_name, atMost, query) => {
    // The first run may send the text of a script.
    await query()
    roundTrips = 0
    await query()
    expect(roundTrips).toBeGreaterThan(0)
    expect(roundTrips).toBeLessThanOrEqual(atMost)
  })
})
