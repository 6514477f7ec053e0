import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type WebhookId } from '#libs/domain/ids/typeid.js'
import { AttemptSlots, type Owned } from './attempt-slots.js'

const QUICK_MS = 20
const SLOW_MS = 9_000

const accountId = mintId('acc')
const otherAccountId = mintId('acc')

const ownedBy = (owner: Owned['accountId']) => (id: WebhookId) => ({ id, accountId: owner })
const owned = ownedBy(accountId)
const idOf = (number: number) => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(number, 12)
  return idFromBytes('whk', bytes)
}
const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => idOf(first + n))
const id = idOf(0)

/** One claim, in which each of them has any number of deliveries due; how many each was given. */
function claim(slots: AttemptSlots, ids: readonly WebhookId[], mostNow = 10, own = owned): number[] {
  const { limit, capacityOf } = slots.offer()
  let left = limit
  const given = ids.map((each) => {
    const count = Math.min(capacityOf(own(each), mostNow), left)
    left -= count
    return count
  })
  given.forEach((count, index) => {
    for (let n = 0; n < count; n += 1) slots.take(own(ids[index] ?? id))
  })
  return given
}

/** Attempts that have begun and ended. */
function made(slots: AttemptSlots, ids: readonly WebhookId[], times: number, tookMs: number | null): void {
  for (const each of ids) {
    for (let n = 0; n < times; n += 1) {
      const leave = slots.take(owned(each))
      leave()
      if (tookMs !== null) slots.learn(each, tookMs)
    }
  }
}

/** Until nobody is given any more, however long they stay. */
function claimAll(slots: AttemptSlots, ids: readonly WebhookId[], own = owned): void {
  while (claim(slots, ids, 10, own).some((count) => count > 0));
}

const slotsFor = ({ quick = [] as WebhookId[], slow = [] as WebhookId[] } = {}) => {
  const slots = new AttemptSlots(200, 10)
  made(slots, quick, 9, QUICK_MS)
  made(slots, slow, 1, SLOW_MS)
  return slots
}

describe('a webhook', () => {
  it('has one slot at first, one more with each quick attempt, and half of them after a slow one', () => {
    const slots = slotsFor()
    const offered = (times: number, tookMs: number | null) => {
      made(slots, [id], times, tookMs)
      return slots.offer().capacityOf(owned(id), 10)
    }
    expect(offered(0, null)).toBe(1)
    expect(offered(1, QUICK_MS)).toBe(2)
    expect(offered(20, QUICK_MS)).toBe(10)
    expect(offered(1, null)).toBe(10)
    expect(offered(1, SLOW_MS)).toBe(5)
    expect(offered(9, SLOW_MS)).toBe(1)
  })

  it('has no more than are left by what it has, nor than it may have now', () => {
    const slots = slotsFor({ quick: [id] })
    for (let n = 0; n < 7; n += 1) slots.take(owned(id))
    expect([10, 8, 7, 1, 0].map((mostNow) => slots.offer().capacityOf(owned(id), mostNow))).toEqual([
      3, 1, 0, 0, 0,
    ])
  })

  it('is given its slots once in a claim, however often it is asked for', () => {
    const slots = slotsFor({ quick: [id] })
    const { capacityOf } = slots.offer()
    expect([id, id, idOf(1), idOf(1)].map((each) => capacityOf(owned(each), 10))).toEqual([10, 0, 1, 0])
  })

  it('that may have one slot alone proves quick with it', () => {
    const slots = new AttemptSlots(4, 1)
    made(slots, [id], 1, QUICK_MS)
    claimAll(slots, idsFrom(1, 100))
    expect(slots.free).toBe(1)
    expect(claim(slots, [id], 1)).toEqual([1])
  })
})

describe('slots are left to others', () => {
  it('by new webhooks, however many', () => {
    const slots = slotsFor()
    for (let account = 1; account <= 100; account += 1) {
      claimAll(slots, idsFrom(account * 1_000, 1_000), ownedBy(mintId('acc')))
    }
    expect(slots.free).toBe(50)
  })

  it('by one account’s webhooks, new or slow, to those of another', () => {
    const [slow, others] = [idsFrom(1_000, 1_000), idsFrom(5_000, 20)]
    const slots = slotsFor({ slow: [...slow, ...others] })
    claimAll(slots, slow)
    claimAll(slots, idsFrom(3_000, 1_000))
    expect(slots.free).toBe(96)
    const toOthers = (ids: readonly WebhookId[]) => claim(slots, ids, 10, ownedBy(otherAccountId))
    expect(toOthers(others).filter((count) => count === 1)).toHaveLength(20)
  })

  it('by one account’s new webhooks to those of many accounts, each with one that hangs too', () => {
    const slots = slotsFor()
    claimAll(slots, idsFrom(1_000, 1_000))
    const others = idsFrom(5_000, 40)
    expect(others.map((other) => claim(slots, [other], 10, ownedBy(mintId('acc'))))).toEqual(
      others.map(() => [1]),
    )
  })

  it('by one account’s webhooks that were quick, and all of a sudden hang, to those of another', () => {
    const [hanging, others] = [idsFrom(1_000, 100), idsFrom(5_000, 3)]
    const slots = slotsFor({ quick: [...hanging, ...others] })
    claimAll(slots, hanging)
    expect(slots.free).toBe(12)
    expect(claim(slots, others, 10, ownedBy(otherAccountId))).toEqual([1, 0, 0])
  })

  it('by slow webhooks, however many, to new ones and to quick ones', () => {
    const slow = idsFrom(1_000, 1_000)
    const slots = slotsFor({ quick: [id], slow })
    claimAll(slots, slow)
    expect(slots.free).toBe(125)
    expect(claim(slots, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
    expect(claim(slots, [id])).toEqual([10])
  })

  it('by webhooks that were quick, and all of a sudden hang', () => {
    const hanging = idsFrom(1_000, 20)
    const slots = slotsFor({ quick: hanging })
    claimAll(slots, hanging)
    expect(slots.free).toBe(45)
    expect(claim(slots, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
  })
})
