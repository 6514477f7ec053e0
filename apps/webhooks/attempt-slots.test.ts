import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type WebhookId } from '#libs/domain/ids/typeid.js'
import { AttemptSlots, type OwnedWebhook } from './attempt-slots.js'

const QUICK_MS = 20
const SLOW_MS = 9_000

const accountId = mintId('acc')
const otherAccountId = mintId('acc')

const ownedBy = (owner: OwnedWebhook['accountId']) => (id: WebhookId) => ({ id, accountId: owner })
const owned = ownedBy(accountId)
const idOf = (number: number) => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(number, 12)
  return idFromBytes('whk', bytes)
}
const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => idOf(first + n))
const id = idOf(0)

/** Claims slots for webhooks that all have many due deliveries. Returns how many each webhook got. */
function claim(slots: AttemptSlots, ids: readonly WebhookId[], maxNow = 10, own = owned): number[] {
  const { limit, capacityOf } = slots.offer()
  let left = limit
  const given = ids.map((each) => {
    const count = Math.min(capacityOf(own(each), maxNow), left)
    left -= count
    return count
  })
  given.forEach((count, index) => {
    for (let n = 0; n < count; n += 1) slots.take(own(ids[index] ?? id))
  })
  return given
}

/** Makes attempts that start and end. */
function attempt(slots: AttemptSlots, ids: readonly WebhookId[], times: number, tookMs: number | null): void {
  for (const each of ids) {
    for (let n = 0; n < times; n += 1) {
      const release = slots.take(owned(each))
      release()
      if (tookMs !== null) slots.recordDuration(each, tookMs)
    }
  }
}

/** Claims until no webhook gets another slot. */
function claimAll(slots: AttemptSlots, ids: readonly WebhookId[], own = owned): void {
  while (claim(slots, ids, 10, own).some((count) => count > 0));
}

const slotsFor = ({ quick = [] as WebhookId[], slow = [] as WebhookId[] } = {}) => {
  const slots = new AttemptSlots(200, 10)
  attempt(slots, quick, 9, QUICK_MS)
  attempt(slots, slow, 1, SLOW_MS)
  return slots
}

describe('a webhook', () => {
  it('starts with one slot, gets one for each quick attempt, and loses half after a slow one', () => {
    const slots = slotsFor()
    const offered = (times: number, tookMs: number | null) => {
      attempt(slots, [id], times, tookMs)
      return slots.offer().capacityOf(owned(id), 10)
    }
    expect(offered(0, null)).toBe(1)
    expect(offered(1, QUICK_MS)).toBe(2)
    expect(offered(20, QUICK_MS)).toBe(10)
    expect(offered(1, null)).toBe(10)
    expect(offered(1, SLOW_MS)).toBe(5)
    expect(offered(9, SLOW_MS)).toBe(1)
  })

  it('gets its slots minus those it holds, within its current limit', () => {
    const slots = slotsFor({ quick: [id] })
    for (let n = 0; n < 7; n += 1) slots.take(owned(id))
    expect([10, 8, 7, 1, 0].map((maxNow) => slots.offer().capacityOf(owned(id), maxNow))).toEqual([
      3, 1, 0, 0, 0,
    ])
  })

  it('gets its slots once in a claim, even if the store returns it twice', () => {
    const slots = slotsFor({ quick: [id] })
    const { capacityOf } = slots.offer()
    expect([id, id, idOf(1), idOf(1)].map((each) => capacityOf(owned(each), 10))).toEqual([10, 0, 1, 0])
  })

  it('counts as quick after a quick attempt even if its limit is one slot', () => {
    const slots = new AttemptSlots(4, 1)
    attempt(slots, [id], 1, QUICK_MS)
    claimAll(slots, idsFrom(1, 100))
    expect(slots.free).toBe(1)
    expect(claim(slots, [id], 1)).toEqual([1])
  })
})

describe('slots stay free for other webhooks', () => {
  it('beside any number of new webhooks', () => {
    const slots = slotsFor()
    for (let account = 1; account <= 100; account += 1) {
      claimAll(slots, idsFrom(account * 1_000, 1_000), ownedBy(mintId('acc')))
    }
    expect(slots.free).toBe(50)
  })

  it('of other accounts, beside the new and slow webhooks of one account', () => {
    const [slow, others] = [idsFrom(1_000, 1_000), idsFrom(5_000, 20)]
    const slots = slotsFor({ slow: [...slow, ...others] })
    claimAll(slots, slow)
    claimAll(slots, idsFrom(3_000, 1_000))
    expect(slots.free).toBe(96)
    const toOthers = (ids: readonly WebhookId[]) => claim(slots, ids, 10, ownedBy(otherAccountId))
    expect(toOthers(others).filter((count) => count === 1)).toHaveLength(20)
  })

  it('of many accounts with one hanging webhook each, beside the new webhooks of one account', () => {
    const slots = slotsFor()
    claimAll(slots, idsFrom(1_000, 1_000))
    const others = idsFrom(5_000, 40)
    expect(others.map((other) => claim(slots, [other], 10, ownedBy(mintId('acc'))))).toEqual(
      others.map(() => [1]),
    )
  })

  it('of other accounts, beside quick webhooks of one account that suddenly hang', () => {
    const [hanging, others] = [idsFrom(1_000, 100), idsFrom(5_000, 3)]
    const slots = slotsFor({ quick: [...hanging, ...others] })
    claimAll(slots, hanging)
    expect(slots.free).toBe(12)
    expect(claim(slots, others, 10, ownedBy(otherAccountId))).toEqual([1, 0, 0])
  })

  it('that are new or quick, beside any number of slow webhooks', () => {
    const slow = idsFrom(1_000, 1_000)
    const slots = slotsFor({ quick: [id], slow })
    claimAll(slots, slow)
    expect(slots.free).toBe(125)
    expect(claim(slots, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
    expect(claim(slots, [id])).toEqual([10])
  })

  it('beside quick webhooks that suddenly hang', () => {
    const hanging = idsFrom(1_000, 20)
    const slots = slotsFor({ quick: hanging })
    claimAll(slots, hanging)
    expect(slots.free).toBe(45)
    expect(claim(slots, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
  })
})
