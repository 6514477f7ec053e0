import { inboxIdIn } from '#libs/ports/read-model/read-model-harness.contract.js'
import { PlaintextCache } from './opened-mail.js'

const [one, other] = [inboxIdIn(1), inboxIdIn(2)]
const page = (text: string) => ({ text })

describe('the cache of opened mail', () => {
  let nowMs: number
  let cache: PlaintextCache<{ text: string }>

  beforeEach(() => {
    nowMs = 1
    cache = new PlaintextCache(10_000, { now: () => nowMs })
  })
  afterEach(() => cache.close())

  it('stores values by inbox and name', () => {
    cache.set(one, 'a', page('one'), 100)
    expect(cache.get(one, 'a')).toEqual(page('one'))
    expect(cache.get(one, 'b')).toBeNull()
    expect(cache.get(other, 'a')).toBeNull()
  })

  it('forgets the values of one inbox', () => {
    cache.set(one, 'a', page('one'), 100)
    cache.set(one, 'b', page('one'), 100)
    cache.set(other, 'a', page('other'), 100)
    cache.forget(one)
    expect([cache.get(one, 'a'), cache.get(one, 'b')]).toEqual([null, null])
    expect(cache.get(other, 'a')).toEqual(page('other'))
  })

  it('is limited in bytes, and evicts the least recently used value first', () => {
    cache.set(one, 'a', page('old'), 4_000)
    cache.set(one, 'b', page('middle'), 4_000)
    expect(cache.get(one, 'a')).not.toBeNull()
    cache.set(other, 'c', page('new'), 4_000)
    expect([cache.get(one, 'a'), cache.get(one, 'b'), cache.get(other, 'c')]).toEqual([
      page('old'),
      null,
      page('new'),
    ])
    cache.set(other, 'd', page('too large'), 20_000)
    expect(cache.get(other, 'd')).toBeNull()
  })

  it('removes a value after a minute, even if it was read or set again', () => {
    cache.set(one, 'a', page('one'), 100)
    for (let seconds = 0; seconds < 60; seconds += 10) {
      expect(cache.get(one, 'a')).not.toBeNull()
      cache.set(one, 'a', page('again'), 100)
      nowMs += 10_000
    }
    nowMs += 1
    expect(cache.get(one, 'a')).toBeNull()
  })

  it('stores nothing if it has 0 bytes', () => {
    const none = new PlaintextCache<{ text: string }>(0)
    none.set(one, 'a', page('one'), 1)
    expect(none.get(one, 'a')).toBeNull()
    none.close()
  })
})
