import { mintId } from '#libs/domain/ids/mint.js'
import { idFromBytes, type WebhookId } from '#libs/domain/ids/typeid.js'
import { Places, type Owned } from './places.js'

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
function claim(places: Places, ids: readonly WebhookId[], mostNow = 10, own = owned): number[] {
  const { limit, room } = places.offer()
  let left = limit
  const given = ids.map((each) => {
    const count = Math.min(room(own(each), mostNow), left)
    left -= count
    return count
  })
  given.forEach((count, index) => {
    for (let n = 0; n < count; n += 1) places.take(own(ids[index] ?? id))
  })
  return given
}

/** Attempts that have begun and ended. */
function made(places: Places, ids: readonly WebhookId[], times: number, tookMs: number | null): void {
  for (const each of ids) {
    for (let n = 0; n < times; n += 1) {
      places.take(owned(each))
      places.leave(owned(each))
      if (tookMs !== null) places.learn(each, tookMs)
    }
  }
}

/** Until nobody is given any more, however long they stay. */
function claimAll(places: Places, ids: readonly WebhookId[], own = owned): void {
  while (claim(places, ids, 10, own).some((count) => count > 0));
}

const placesFor = ({ quick = [] as WebhookId[], slow = [] as WebhookId[] } = {}) => {
  const places = new Places(200, 10)
  made(places, quick, 9, QUICK_MS)
  made(places, slow, 1, SLOW_MS)
  return places
}

describe('a webhook', () => {
  it('has one place at first, one more with each quick attempt, and half of them after a slow one', () => {
    const places = placesFor()
    const offered = (times: number, tookMs: number | null) => {
      made(places, [id], times, tookMs)
      return places.offer().room(owned(id), 10)
    }
    expect(offered(0, null)).toBe(1)
    expect(offered(1, QUICK_MS)).toBe(2)
    expect(offered(20, QUICK_MS)).toBe(10)
    expect(offered(1, null)).toBe(10)
    expect(offered(1, SLOW_MS)).toBe(5)
    expect(offered(9, SLOW_MS)).toBe(1)
  })

  it('has no more than are left by what it has, nor than it may have now', () => {
    const places = placesFor({ quick: [id] })
    for (let n = 0; n < 7; n += 1) places.take(owned(id))
    expect([10, 8, 7, 1, 0].map((mostNow) => places.offer().room(owned(id), mostNow))).toEqual([
      3, 1, 0, 0, 0,
    ])
  })

  it('is given its places once in a claim, however often it is asked for', () => {
    const places = placesFor({ quick: [id] })
    const { room } = places.offer()
    expect([id, id, idOf(1), idOf(1)].map((each) => room(owned(each), 10))).toEqual([10, 0, 1, 0])
  })

  it('that may have one place alone proves quick with it', () => {
    const places = new Places(4, 1)
    made(places, [id], 1, QUICK_MS)
    claimAll(places, idsFrom(1, 100))
    expect(places.free).toBe(1)
    expect(claim(places, [id], 1)).toEqual([1])
  })
})

describe('places are left to others', () => {
  it('by new webhooks, however many', () => {
    const places = placesFor()
    for (let account = 1; account <= 100; account += 1) {
      claimAll(places, idsFrom(account * 1_000, 1_000), ownedBy(mintId('acc')))
    }
    expect(places.free).toBe(50)
  })

  it('by one account’s webhooks, new or slow, to those of another', () => {
    const [slow, others] = [idsFrom(1_000, 1_000), idsFrom(5_000, 20)]
    const places = placesFor({ slow: [...slow, ...others] })
    claimAll(places, slow)
    claimAll(places, idsFrom(3_000, 1_000))
    expect(places.free).toBe(96)
    const toOthers = (ids: readonly WebhookId[]) => claim(places, ids, 10, ownedBy(otherAccountId))
    expect(toOthers(others).filter((count) => count === 1)).toHaveLength(20)
  })

  it('by one account’s new webhooks to those of many accounts, each with one that hangs too', () => {
    const places = placesFor()
    claimAll(places, idsFrom(1_000, 1_000))
    const others = idsFrom(5_000, 40)
    expect(others.map((other) => claim(places, [other], 10, ownedBy(mintId('acc'))))).toEqual(
      others.map(() => [1]),
    )
  })

  it('by one account’s webhooks that were quick, and all of a sudden hang, to those of another', () => {
    const [hanging, others] = [idsFrom(1_000, 100), idsFrom(5_000, 3)]
    const places = placesFor({ quick: [...hanging, ...others] })
    claimAll(places, hanging)
    expect(places.free).toBe(12)
    expect(claim(places, others, 10, ownedBy(otherAccountId))).toEqual([1, 0, 0])
  })

  it('by slow webhooks, however many, to new ones and to quick ones', () => {
    const slow = idsFrom(1_000, 1_000)
    const places = placesFor({ quick: [id], slow })
    claimAll(places, slow)
    expect(places.free).toBe(125)
    expect(claim(places, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
    expect(claim(places, [id])).toEqual([10])
  })

  it('by webhooks that were quick, and all of a sudden hang', () => {
    const hanging = idsFrom(1_000, 20)
    const places = placesFor({ quick: hanging })
    claimAll(places, hanging)
    expect(places.free).toBe(45)
    expect(claim(places, idsFrom(1, 5))).toEqual([1, 1, 1, 1, 1])
  })
})
