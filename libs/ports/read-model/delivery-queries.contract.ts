import type { WebhookId } from '#libs/domain/ids/typeid.js'
import {
  answered,
  DeliveryFollower,
  deliveryIdOf,
  moment,
  requested,
  webhookIdIn,
} from './delivery-follower.contract.js'
import { DueClaims, type DueClaim } from './due-claims.js'
import type { DeliveryListQuery } from './delivery-views.js'
import type { ReadModelHarness } from './read-model-harness.contract.js'
import { webhookHealth } from './tables.js'

const id = webhookIdIn(1)
const neighbour = webhookIdIn(1, 1)
const elsewhere = webhookIdIn(2)

export function describeDeliveryQueries(current: () => ReadModelHarness): void {
  let follower: DeliveryFollower
  let claims: DueClaims

  beforeEach(async () => {
    for (const partition of [0, 2, 3]) await DeliveryFollower.begin(current().store, partition)
    follower = await DeliveryFollower.begin(current().store, 1)
    claims = new DueClaims(current().deliveries)
  })

  const list = async (query: Partial<DeliveryListQuery> = {}) => {
    const all = { webhookId: id, state: null, order: 'asc', from: 0, to: 1_000, limit: 100 } as const
    const rows = await current().deliveries.listDeliveries({ ...all, ...query })
    return rows.map(({ delivery }) => delivery.id)
  }
  const ids = (...numbers: number[]) => numbers.map(deliveryIdOf)
  const capacitiesOf = (capacityOf: (webhookId: WebhookId) => number) => (webhookIds: readonly WebhookId[]) =>
    Promise.resolve(webhookIds.map(capacityOf))
  const claim = async (atMs: number, claimed: Partial<DueClaim> = {}) => {
    const all = { now: moment(atMs), leaseMs: 60_000, limit: 100, capacityOf: capacitiesOf(() => 100) }
    const rows = await claims.claim({ ...all, ...claimed })
    return rows.map(({ delivery }) => delivery.id).sort()
  }
  const health = async (webhookId: WebhookId) =>
    (await current().store.rows(webhookHealth, [{ owner: null, key: webhookId }]))[0]

  describe('the log of deliveries', () => {
    beforeEach(async () => {
      await follower.follow(requested(id, 1), requested(neighbour, 9), requested(id, 2), requested(id, 3))
      await follower.follow(answered(id, 2), answered(id, 3, { status: 500 }))
    })

    it('lists those of one webhook in the order of their requests, in both directions', async () => {
      expect(await list()).toEqual(ids(1, 2, 3))
      expect(await list({ order: 'desc' })).toEqual(ids(3, 2, 1))
      expect(await list({ webhookId: neighbour })).toEqual(ids(9))
      expect(await list({ webhookId: webhookIdIn(1, 2) })).toEqual([])
    })

    it('lists deliveries by their current state', async () => {
      expect(await list({ state: 'pending' })).toEqual(ids(1))
      expect(await list({ state: 'succeeded' })).toEqual(ids(2))
      expect(await list({ state: 'failed' })).toEqual(ids(3))
      await follower.follow(answered(id, 1))
      expect(await list({ state: 'pending' })).toEqual([])
      expect(await list({ state: 'succeeded', order: 'desc' })).toEqual(ids(2, 1))
    })

    test.each([
      { from: 0, to: 1, expected: [1] },
      { from: 1, to: 3, expected: [2] },
      { from: 2, to: 4, expected: [2, 3] },
      { from: 2, to: 2, expected: [] },
      { from: 0, to: Number.MAX_SAFE_INTEGER, expected: [1, 2, 3] },
    ])('lists those from offset $from to before $to, in both directions', async ({ from, to, expected }) => {
      expect(await list({ from, to })).toEqual(ids(...expected))
      expect(await list({ from, to, order: 'desc' })).toEqual(ids(...expected.toReversed()))
      expect(await list({ limit: 2, order: 'desc' })).toEqual(ids(3, 2))
    })

    it('returns a delivery with its attempts, and only for its webhook', async () => {
      const row = await current().deliveries.delivery({ webhookId: id, deliveryId: deliveryIdOf(3) })
      expect(row).toMatchObject({
        offset: 3,
        delivery: {
          ...{ id: deliveryIdOf(3), webhookId: id, state: 'failed', dueAt: null, requestedAt: moment(0) },
          attempts: [{ status: 500, error: 'answered 500', latencyMs: 3, attemptedAt: moment(0) }],
        },
      })
      expect(Buffer.from(row?.delivery.attempts[0]?.answer ?? []).toString()).toBe('sealed')
      expect(
        await current().deliveries.delivery({ webhookId: neighbour, deliveryId: deliveryIdOf(3) }),
      ).toBeNull()
    })

    it('is empty after the views are rebuilt', async () => {
      const other = await DeliveryFollower.begin(current().store, 1, { logId: 'another-log' })
      expect(await list()).toEqual([])
      expect(await claim(1_000)).toEqual([])
      expect(await health(id)).toBeNull()
      await other.follow(requested(id, 3))
      expect(await list()).toEqual(ids(3))
      expect(await claim(1_000)).toEqual(ids(3))
    })
  })

  describe('old deliveries', () => {
    it('are removed once they have ended', async () => {
      await follower.follow(
        requested(id, 1, 10),
        requested(id, 2, 20),
        requested(id, 3, 30),
        requested(neighbour, 4),
      )
      await follower.follow(answered(id, 2), answered(id, 3, { status: 500 }), answered(neighbour, 4))
      expect(await current().deliveries.removeOld(moment(30))).toBe(2)
      expect(await list()).toEqual(ids(1, 3))
      expect(await list({ state: 'succeeded' })).toEqual([])
      expect(await list({ webhookId: neighbour })).toEqual([])
      expect(await claim(1_000)).toEqual(ids(1))
      expect(await current().deliveries.removeOld(moment(30))).toBe(0)
    })

    it('are removed however many there are', async () => {
      const many = Array.from({ length: 1_200 }, (_, n) => n + 1)
      await follower.follow(...many.map((n) => requested(id, n)))
      await follower.follow(...many.map((n) => answered(id, n)))
      expect(await current().deliveries.removeOld(moment(1))).toBe(1_200)
      expect(await list()).toEqual([])
    })
  })

  describe('the health of a webhook', () => {
    it('has the time since when it fails, until it succeeds', async () => {
      expect(await health(id)).toBeNull()
      await follower.follow(requested(id, 1), requested(id, 2), requested(id, 3), requested(id, 4))
      expect(await health(id)).toEqual({ webhookId: id, failingSince: null })
      await follower.follow(answered(id, 1, { atMs: 1_000, status: 500 }))
      await follower.follow(answered(id, 2, { atMs: 2_000, status: 500 }))
      expect(await health(id)).toEqual({ webhookId: id, failingSince: moment(1_000) })
      await follower.follow(answered(id, 3))
      expect(await health(id)).toEqual({ webhookId: id, failingSince: null })
    })
  })

  describe('due deliveries', () => {
    it('are claimed once until the lease ends', async () => {
      await follower.follow(requested(id, 1), requested(neighbour, 2))
      expect(await claim(0)).toEqual(ids(1, 2))
      expect(await claim(59_999)).toEqual([])
      expect(await claim(60_000)).toEqual(ids(1, 2))
    })

    it('are not claimed before their due time', async () => {
      await follower.follow(requested(id, 1, 5_000))
      expect(await claim(4_999)).toEqual([])
      expect(await claim(5_000)).toEqual(ids(1))
    })

    it('are claimed again at the next attempt, also before the previous lease ends', async () => {
      await follower.follow(requested(id, 1))
      expect(await claim(0)).toEqual(ids(1))
      await follower.follow(answered(id, 1, { status: 500, nextMs: 5_000 }))
      expect(await claim(4_999)).toEqual([])
      expect(await claim(5_000)).toEqual(ids(1))
    })

    it('are not claimed once they are delivered or have no more attempts', async () => {
      await follower.follow(requested(id, 1), requested(id, 2), requested(id, 3))
      expect(await claim(0)).toEqual(ids(1, 2, 3))
      await follower.follow(answered(id, 1), answered(id, 2, { status: 500 }))
      expect(await claim(60_000)).toEqual(ids(3))
    })

    it('are claimed earliest first, up to the capacity of their webhook', async () => {
      await follower.follow(
        requested(id, 1, 30),
        requested(id, 2, 10),
        requested(id, 3, 20),
        requested(neighbour, 4),
      )
      expect(
        await claim(1_000, { capacityOf: capacitiesOf((webhookId) => (webhookId === id ? 2 : 0)) }),
      ).toEqual(ids(2, 3))
      expect(
        await claim(1_000, { capacityOf: capacitiesOf((webhookId) => (webhookId === id ? 0 : 5)) }),
      ).toEqual(ids(4))
      expect(await claim(1_000)).toEqual(ids(1))
    })

    it('of one webhook leave capacity for those of others', async () => {
      const other = await DeliveryFollower.begin(current().store, 2)
      const many = Array.from({ length: 50 }, (_, n) => requested(id, n + 10))
      await follower.follow(...many, requested(neighbour, 1, 5))
      await other.follow(requested(elsewhere, 2, 6))
      const claimed = await claim(1_000, { limit: 12, capacityOf: capacitiesOf(() => 4) })
      expect(claimed).toEqual(expect.arrayContaining(ids(1, 2)))
      expect(claimed).toHaveLength(6)
    })

    it('of one webhook don’t wait for all those of another', async () => {
      const other = await DeliveryFollower.begin(current().store, 2)
      await follower.follow(...Array.from({ length: 50 }, (_, n) => requested(id, n + 10)))
      await other.follow(requested(elsewhere, 1, 500))
      const claimed: string[] = []
      while (!claimed.includes(deliveryIdOf(1)) && claimed.length < 30) {
        claimed.push(...(await claim(1_000, { limit: 2 })))
      }
      expect(claimed).toContain(deliveryIdOf(1))
    })

    it('are claimed up to the limit', async () => {
      await follower.follow(...Array.from({ length: 20 }, (_, n) => requested(id, n + 1)))
      expect(await claim(0, { limit: 7 })).toHaveLength(7)
      expect(await claim(0, { limit: 7 })).toHaveLength(7)
      expect(await claim(0, { limit: 7 })).toHaveLength(6)
    })

    it('have an earliest due time, past or future', async () => {
      const earliest = () => current().deliveries.earliestDue()
      expect(await earliest()).toBeNull()
      await follower.follow(requested(id, 1, 2_000), requested(neighbour, 2, 1_000), requested(id, 3, 3_000))
      expect(await earliest()).toEqual(moment(1_000))
      expect(await claim(1_000, { leaseMs: 500 })).toEqual(ids(2))
      await follower.follow(answered(neighbour, 2))
      expect(await claim(1_500)).toEqual([])
      expect(await earliest()).toEqual(moment(2_000))
    })

    it('are not claimed while the views are catching up', async () => {
      const behind = await DeliveryFollower.begin(current().store, 1, { logId: 'another-log', end: 3 })
      await behind.follow(requested(id, 1), requested(id, 2))
      expect(await claim(1_000)).toEqual([])
      await behind.follow(answered(id, 1))
      expect(await claim(1_000)).toEqual(ids(2))
    })
  })
}
