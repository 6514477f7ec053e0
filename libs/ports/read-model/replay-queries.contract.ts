import { idFromBytes, type ReplayId, type WebhookId } from '#libs/domain/ids/typeid.js'
import type { ReplayEvent, ReplayRequested, ReplaySelection } from '#libs/domain/webhook/webhook-events.js'
import { answered, DeliveryFollower, moment, requested, webhookIdIn } from './delivery-follower.contract.js'
import type { ListQuery } from './queries.js'
import type { ReadModelHarness } from './read-model-harness.contract.js'

const webhookId = webhookIdIn(1)
const neighbour = webhookIdIn(1, 1)
const everything: ListQuery<ReplayId> = { order: 'asc', after: null, limit: 100 }
const selection: ReplaySelection = { kind: 'range', from: moment(0), to: moment(9), onlyFailed: true }

const replayIdOf = (n: number) => idFromBytes('rpl', Buffer.alloc(16, n))

const asked = (n: number, { of = webhookId, atMs = 0 } = {}): ReplayRequested => ({
  ...{ type: 'ReplayRequested', webhookId: of, replayId: replayIdOf(n), environment: 'staging' },
  ...{ accountId: idFromBytes('acc', Buffer.alloc(16, 9)), selection, requestedAt: moment(atMs) },
})
const through = (n: number): ReplayEvent => ({
  ...{ type: 'ReplayAdvanced', webhookId, replayId: replayIdOf(n), step: 1, next: null },
  advancedAt: moment(1),
})
const cancelled = (n: number): ReplayEvent => ({
  ...{ type: 'ReplayCancelled', webhookId, replayId: replayIdOf(n), cancelledAt: moment(1) },
})

export function describeReplayQueries(made: () => ReadModelHarness): void {
  let follower: DeliveryFollower

  beforeEach(async () => {
    for (const partition of [0, 2, 3]) await DeliveryFollower.begin(made().store, partition)
    follower = await DeliveryFollower.begin(made().store, 1)
  })

  const idsOf = async (of: WebhookId, query: Partial<ListQuery<ReplayId>> = {}) =>
    (await made().replays.listReplays(of, { ...everything, ...query })).map(({ id }) => id)
  const claim = async (atMs: number) =>
    (await made().replays.claimReplay({ now: moment(atMs), leaseMs: 60_000 }))?.id ?? null
  const ids = (...numbers: number[]) => numbers.map(replayIdOf)

  describe('replays', () => {
    it('are listed by id, either way, with those of no other webhook', async () => {
      await follower.follow(asked(2), asked(1), asked(3), asked(9, { of: neighbour }))
      expect(await idsOf(webhookId)).toEqual(ids(1, 2, 3))
      expect(await idsOf(webhookId, { order: 'desc', limit: 2 })).toEqual(ids(3, 2))
      expect(await idsOf(webhookId, { after: replayIdOf(2) })).toEqual(ids(3))
      expect(await idsOf(webhookId, { order: 'desc', after: replayIdOf(2) })).toEqual(ids(1))
      expect(await idsOf(neighbour)).toEqual(ids(9))
      const other = { webhookId: neighbour, replayId: replayIdOf(1) }
      expect(await made().replays.replay(other)).toBeNull()
    })

    it('count what they have asked for as it goes on', async () => {
      await follower.follow(asked(1))
      const [first, second] = [requested(webhookId, 1), requested(webhookId, 2)]
      const replayId = replayIdOf(1)
      await follower.follow({ ...first, replayId }, { ...second, replayId }, requested(webhookId, 3))
      await follower.follow(answered(webhookId, 1), { ...first, replayId })
      await follower.follow(answered(webhookId, 2, { status: 500, nextMs: 5_000 }), answered(webhookId, 3))
      expect(await made().replays.replay({ webhookId, replayId })).toEqual({
        ...{ id: replayId, webhookId, accountId: asked(1).accountId, environment: 'staging', selection },
        ...{ requestedAt: moment(0), steps: 0, next: { stage: 'told', offset: 0 }, cancelledAt: null },
        ...{ requested: 2, begun: 2, done: 1 },
      })
    })

    it('are claimed in turn while they have more to ask for, until each lease ends', async () => {
      await follower.follow(asked(1), asked(2), asked(3))
      await follower.follow(through(2))
      expect([await claim(0), await claim(0)].sort()).toEqual(ids(1, 3))
      expect(await claim(59_999)).toBeNull()
      await made().replays.releaseReplay({ webhookId, replayId: replayIdOf(3) }, moment(20))
      expect(await claim(19)).toBeNull()
      expect(await claim(20)).toBe(replayIdOf(3))
      await follower.follow(cancelled(3))
      expect(await claim(60_000)).toBe(replayIdOf(1))
      expect(await claim(100_000)).toBeNull()
    })

    it('that are through or cancelled are not brought back by who gives them back', async () => {
      await follower.follow(asked(1))
      expect(await claim(0)).toBe(replayIdOf(1))
      await follower.follow(through(1))
      await made().replays.releaseReplay({ webhookId, replayId: replayIdOf(1) }, moment(1))
      expect(await claim(1_000)).toBeNull()
    })

    it('wait until the views have caught up', async () => {
      const behind = await DeliveryFollower.begin(made().store, 1, { logId: 'another-log', end: 2 })
      await behind.follow(asked(1))
      expect(await claim(0)).toBeNull()
      await behind.follow(asked(2))
      expect(await claim(0)).not.toBeNull()
    })

    it('are forgotten where the views are built anew', async () => {
      await follower.follow(asked(1))
      await DeliveryFollower.begin(made().store, 1, { logId: 'another-log' })
      expect(await idsOf(webhookId)).toEqual([])
      expect(await claim(0)).toBeNull()
    })

    it('of long ago are forgotten, also those that are not through', async () => {
      await follower.follow(
        asked(1, { atMs: 10 }),
        asked(2, { atMs: 20 }),
        asked(3, { atMs: 5, of: neighbour }),
      )
      expect(await made().replays.removeOldReplays(moment(20))).toBe(2)
      expect(await idsOf(webhookId)).toEqual(ids(2))
      expect(await idsOf(neighbour)).toEqual([])
      expect(await claim(30)).toBe(replayIdOf(2))
      expect(await claim(30)).toBeNull()
    })
  })
}
