import { idFromBytes, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { ReplayEvent, ReplayRequested, ReplaySelection } from '#libs/domain/webhook/events.js'
import { answered, DeliveryFollower, moment, requested, webhookIdIn } from './delivery-follower.contract.js'
import type { ListQuery } from './lists.js'
import type { ReadModelHarness } from './read-model-harness.contract.js'

const webhookId = webhookIdIn(1)
const neighbour = webhookIdIn(1, 1)
const everything: ListQuery<ReplayId> = { order: 'asc', after: null, limit: 100 }
const selection: ReplaySelection = { kind: 'range', from: moment(0), to: moment(9), onlyFailed: true }

const replayIdOf = (n: number) => idFromBytes('rpl', Buffer.alloc(16, n))

const requestedReplay = (n: number, { of = webhookId, atMs = 0 } = {}): ReplayRequested => ({
  ...{ type: 'ReplayRequested', webhookId: of, replayId: replayIdOf(n), environment: 'staging' },
  ...{ accountId: idFromBytes('acc', Buffer.alloc(16, 9)), selection, requestedAt: moment(atMs) },
})
const completed = (n: number): ReplayEvent => ({
  ...{ type: 'ReplayAdvanced', webhookId, replayId: replayIdOf(n), step: 1, next: null },
  advancedAt: moment(1),
})
const cancelled = (n: number): ReplayEvent => ({
  ...{ type: 'ReplayCancelled', webhookId, replayId: replayIdOf(n), cancelledAt: moment(1) },
})

export function describeReplayQueries(current: () => ReadModelHarness): void {
  let follower: DeliveryFollower

  beforeEach(async () => {
    for (const partition of [0, 2, 3]) await DeliveryFollower.begin(current().store, partition)
    follower = await DeliveryFollower.begin(current().store, 1)
  })

  const idsOf = async (of: WebhookId, query: Partial<ListQuery<ReplayId>> = {}) =>
    (await current().replays.listReplays(of, { ...everything, ...query })).map(({ id }) => id)
  const claim = async (atMs: number) =>
    (await current().replays.claimReplay({ now: moment(atMs), leaseMs: 60_000 }))?.id ?? null
  const release = async (n: number, at: Date) => {
    const claimed = await current().replays.replay({ webhookId, replayId: replayIdOf(n) })
    if (claimed !== null) await current().replays.releaseReplay(claimed, at)
  }
  const ids = (...numbers: number[]) => numbers.map(replayIdOf)

  describe('replays', () => {
    it('are listed by id, in both directions, for one webhook', async () => {
      await follower.follow(
        requestedReplay(2),
        requestedReplay(1),
        requestedReplay(3),
        requestedReplay(9, { of: neighbour }),
      )
      expect(await idsOf(webhookId)).toEqual(ids(1, 2, 3))
      expect(await idsOf(webhookId, { order: 'desc', limit: 2 })).toEqual(ids(3, 2))
      expect(await idsOf(webhookId, { after: replayIdOf(2) })).toEqual(ids(3))
      expect(await idsOf(webhookId, { order: 'desc', after: replayIdOf(2) })).toEqual(ids(1))
      expect(await idsOf(neighbour)).toEqual(ids(9))
      const other = { webhookId: neighbour, replayId: replayIdOf(1) }
      expect(await current().replays.replay(other)).toBeNull()
    })

    it('count their deliveries as these progress', async () => {
      await follower.follow(requestedReplay(1))
      const [first, second] = [requested(webhookId, 1), requested(webhookId, 2)]
      const replayId = replayIdOf(1)
      await follower.follow({ ...first, replayId }, { ...second, replayId }, requested(webhookId, 3))
      await follower.follow(answered(webhookId, 1), { ...first, replayId })
      await follower.follow(answered(webhookId, 2, { status: 500, nextMs: 5_000 }), answered(webhookId, 3))
      expect(await current().replays.replay({ webhookId, replayId })).toEqual({
        ...{
          id: replayId,
          webhookId,
          accountId: requestedReplay(1).accountId,
          environment: 'staging',
          selection,
        },
        ...{
          requestedAt: moment(0),
          steps: 0,
          next: { stage: 'past-deliveries', offset: 0 },
          cancelledAt: null,
        },
        ...{ requested: 2, begun: 2, done: 1 },
      })
    })

    it('are claimed in turn while they have more to request, once per lease', async () => {
      await follower.follow(requestedReplay(1), requestedReplay(2), requestedReplay(3))
      await follower.follow(completed(2))
      expect([await claim(0), await claim(0)].sort()).toEqual(ids(1, 3))
      expect(await claim(59_999)).toBeNull()
      await release(3, moment(20))
      expect(await claim(19)).toBeNull()
      expect(await claim(20)).toBe(replayIdOf(3))
      await follower.follow(cancelled(3))
      expect(await claim(60_000)).toBe(replayIdOf(1))
      expect(await claim(100_000)).toBeNull()
    })

    it('that are completed or cancelled can’t be claimed after a release', async () => {
      await follower.follow(requestedReplay(1))
      const claimed = await current().replays.claimReplay({ now: moment(0), leaseMs: 60_000 })
      expect(claimed?.id).toBe(replayIdOf(1))
      await follower.follow(completed(1))
      if (claimed !== null) await current().replays.releaseReplay(claimed, moment(1))
      expect(await claim(1_000)).toBeNull()
    })

    it('can’t be claimed while the views are catching up', async () => {
      const behind = await DeliveryFollower.begin(current().store, 1, { logId: 'another-log', end: 2 })
      await behind.follow(requestedReplay(1))
      expect(await claim(0)).toBeNull()
      await behind.follow(requestedReplay(2))
      expect(await claim(0)).not.toBeNull()
    })

    it('are gone after the views are rebuilt', async () => {
      await follower.follow(requestedReplay(1))
      await DeliveryFollower.begin(current().store, 1, { logId: 'another-log' })
      expect(await idsOf(webhookId)).toEqual([])
      expect(await claim(0)).toBeNull()
    })

    it('are removed when they are old, even if they are not completed', async () => {
      await follower.follow(
        requestedReplay(1, { atMs: 10 }),
        requestedReplay(2, { atMs: 20 }),
        requestedReplay(3, { atMs: 5, of: neighbour }),
      )
      expect(await current().replays.removeOldReplays(moment(20))).toBe(2)
      expect(await idsOf(webhookId)).toEqual(ids(2))
      expect(await idsOf(neighbour)).toEqual([])
      expect(await claim(30)).toBe(replayIdOf(2))
      expect(await claim(30)).toBeNull()
    })
  })
}
