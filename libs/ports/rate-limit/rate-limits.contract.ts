import { randomUUID } from 'node:crypto'
import { until } from '#test/harness/until.js'
import type { RateGroup, RateLimits, RatePolicies, RatePolicy } from './rate-limits.js'

export interface RateLimitsHarness {
  one: RateLimits
  /** Shares its counts with `one`; the same object if each process counts alone. */
  other: RateLimits
  close(): Promise<void>
}

/** Tolerance between the server's clock, this process's clock and timers. */
const SLACK_MS = 60

export function describeRateLimits(name: string, make: () => Promise<RateLimitsHarness>): void {
  describe(`${name} as rate limits`, () => {
    let harness: RateLimitsHarness
    let key: string

    beforeAll(async () => {
      harness = await make()
    })
    afterAll(() => harness.close())
    beforeEach(() => {
      key = randomUUID()
    })

    const sustained: RatePolicy = { name: 'sustained', quota: 3, windowSeconds: 60 }
    const burst: RatePolicy = { name: 'burst', quota: 2, windowSeconds: 600 }
    const both: RatePolicies = [sustained, burst]

    /** The results of consecutive requests. */
    async function take(count: number, policies: RatePolicies = both, limits = harness.one) {
      const results: (readonly [boolean, string, number])[] = []
      for (let taken = 0; taken < count; taken += 1) {
        const { isAllowed, next } = await limits.consume(key, policies)
        results.push([isAllowed, next.policy.name, next.remaining])
      }
      return results
    }

    it('uses one policy after the other, and returns the next one', async () => {
      expect(await take(7)).toEqual([
        [true, 'sustained', 2],
        [true, 'sustained', 1],
        [true, 'burst', 2],
        [true, 'burst', 1],
        [true, 'sustained', 0],
        [false, 'sustained', 0],
        [false, 'sustained', 0],
      ])
    })

    it('returns the policy that refills first, whatever their order', async () => {
      const slow: RatePolicy = { name: 'slow', quota: 1, windowSeconds: 60 }
      const quick: RatePolicy = { name: 'quick', quota: 1, windowSeconds: 30 }
      await take(2, [slow, quick])
      const { isAllowed, next } = await harness.one.consume(key, [slow, quick])
      expect({ isAllowed, name: next.policy.name }).toEqual({ isAllowed: false, name: 'quick' })
      expect(next.refillsInMs).toBeGreaterThan(20_000)
      expect(next.refillsInMs).toBeLessThanOrEqual(30_000)
    })

    it('allows nothing with a quota of 0', async () => {
      const none: RatePolicies = [{ ...sustained, quota: 0 }]
      expect(await take(2, none)).toEqual([
        [false, 'sustained', 0],
        [false, 'sustained', 0],
      ])
    })

    it('counts different keys, and policies with different names, separately', async () => {
      await take(6)
      expect((await harness.one.consume(randomUUID(), both)).next.remaining).toBe(2)
      expect((await harness.one.consume(key, [{ ...sustained, name: 'another' }])).next.remaining).toBe(2)
      expect((await harness.one.consume(key, both)).isAllowed).toBe(false)
    })

    it('keeps its count if the quota changes', async () => {
      await take(3, [sustained])
      expect(await take(1, [{ ...sustained, quota: 10 }])).toEqual([[true, 'sustained', 6]])
      expect(await take(1, [{ ...sustained, quota: 2 }])).toEqual([[false, 'sustained', 0]])
    })

    it('charges many requests at once, also beyond the quota', async () => {
      const { quota } = sustained
      expect((await harness.one.charge(key, sustained, quota - 1)).isAllowed).toBe(true)
      expect(await take(2)).toEqual([
        [true, 'burst', 2],
        [true, 'burst', 1],
      ])
      const other = randomUUID()
      await harness.one.charge(other, sustained, quota)
      expect(await harness.other.charge(other, sustained, 10 * quota)).toMatchObject({
        isAllowed: true,
        next: { policy: sustained, remaining: 0 },
      })
      expect((await harness.one.consume(other, [sustained])).isAllowed).toBe(false)
      expect((await harness.one.charge(other, sustained, 1)).isAllowed).toBe(false)
    })

    describe('with a group', () => {
      const groupOf = (quota: number): RateGroup => ({
        key: `group-${key}`,
        policy: { name: 'account', quota, windowSeconds: 60 },
      })

      it('counts a request for both, and none that one of them refuses', async () => {
        const group = groupOf(6)
        const results: unknown[] = []
        const consume = async (who: string) => {
          const { isAllowed, next, group: shared } = await harness.one.consume(`${who}-${key}`, both, group)
          results.push([who, isAllowed, next.policy.name, next.remaining, shared?.remaining])
        }
        // The first one uses up its own quotas.
        for (const who of ['one', 'one', 'one', 'one', 'one', 'one', 'other', 'other', 'third'])
          await consume(who)
        expect(results).toEqual([
          ['one', true, 'sustained', 2, 5],
          ['one', true, 'sustained', 1, 4],
          ['one', true, 'burst', 2, 3],
          ['one', true, 'burst', 1, 2],
          ['one', true, 'sustained', 0, 1],
          ['one', false, 'sustained', 0, 1],
          ['other', true, 'sustained', 2, 0],
          ['other', false, 'sustained', 2, 0],
          ['third', false, 'sustained', 3, 0],
        ])
      })

      it('charges both, or none', async () => {
        const group = groupOf(10)
        const charge = async (who: string) => {
          const { isAllowed, next, group: shared } = await harness.one.charge(who + key, sustained, 4, group)
          return [isAllowed, next.remaining, shared?.remaining]
        }
        expect(await charge('one')).toEqual([true, 0, 6])
        expect(await charge('one')).toEqual([false, 0, 6])
        expect(await charge('two')).toEqual([true, 0, 2])
        expect(await charge('three')).toEqual([true, 0, 0])
        expect(await charge('four')).toEqual([false, 3, 0])
        expect(await harness.one.peek(`four${key}`, both, group)).toMatchObject({
          isAllowed: false,
          next: { policy: sustained, remaining: 3 },
        })
      })

      it('allows exactly its quota for concurrent requests of several keys and processes', async () => {
        const policies: RatePolicies = [{ ...sustained, quota: 20 }]
        const results = await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            (index % 2 === 0 ? harness.one : harness.other).consume(
              `${index % 5}-${key}`,
              policies,
              groupOf(30),
            ),
          ),
        )
        expect(results.filter(({ isAllowed }) => isAllowed)).toHaveLength(30)
      })
    })

    it('peeks without counting', async () => {
      const fresh = await harness.one.peek(key, both)
      expect(fresh).toMatchObject({ isAllowed: true, next: { remaining: 3, refillsInMs: 60_000 } })
      await take(3)
      expect(await harness.one.peek(key, both)).toMatchObject({ isAllowed: true, next: { policy: burst } })
      await take(2)
      for (let times = 0; times < 3; times += 1) {
        expect(await harness.one.peek(key, both)).toMatchObject({
          isAllowed: false,
          next: { policy: sustained, remaining: 0 },
        })
      }
    })

    it('allows exactly the quota for concurrent requests of several processes', async () => {
      const policies: RatePolicies = [
        { ...sustained, quota: 20 },
        { ...burst, quota: 10 },
      ]
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          (index % 2 === 0 ? harness.one : harness.other).consume(key, policies),
        ),
      )
      expect(results.filter(({ isAllowed }) => isAllowed)).toHaveLength(30)
    })

    it('refuses until the time that it returns, and allows afterwards', async () => {
      const policies: RatePolicies = [{ name: 'short', quota: 1, windowSeconds: 8 }]
      await take(1, policies)
      const sentAt = performance.now()
      const refused = await harness.one.consume(key, policies)
      const answeredAt = performance.now()
      const { refillsInMs } = refused.next
      expect(refused.isAllowed).toBe(false)
      expect(refillsInMs).toBeLessThanOrEqual(8_000)
      await until('the quota to refill', async () => {
        const isLate = performance.now() > answeredAt + refillsInMs + SLACK_MS
        const { isAllowed } = await harness.one.peek(key, policies)
        const isEarly = performance.now() < sentAt + refillsInMs - SLACK_MS
        if (isEarly || isLate) expect(isAllowed).toBe(isLate)
        // A result may be a rounded millisecond early; the quota must not be used before its time.
        return isAllowed && performance.now() > answeredAt + refillsInMs
      })
      expect(await take(2, policies)).toEqual([
        [true, 'short', 0],
        [false, 'short', 0],
      ])
    })
  })
}
