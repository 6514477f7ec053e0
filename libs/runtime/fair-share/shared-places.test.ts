import { SharedPlaces } from './shared-places.js'

type Owners = Parameters<SharedPlaces['take']>[0]

describe('shared places', () => {
  /** Whose places were given up, in order. */
  let givenUp: string[]

  beforeEach(() => {
    givenUp = []
  })

  function take(places: SharedPlaces, ...owners: Owners) {
    return places.take(owners, () => givenUp.push(owners.join(' ')) > 0)
  }

  /** How many of so many tries get a place. */
  function fill(places: SharedPlaces, tries: number, ...owners: Owners): number {
    return Array.from({ length: tries }, () => take(places, ...owners)).filter((leave) => leave !== null)
      .length
  }

  it('may all be one owner’s', () => {
    const places = new SharedPlaces(10)
    expect(fill(places, 11, 'a', 'key')).toBe(10)
    expect(givenUp).toEqual([])
  })

  it('go from the owner with the most to others, until they hold the same', () => {
    const places = new SharedPlaces(12)
    fill(places, 12, 'a')
    expect(fill(places, 12, 'b')).toBe(6)
    expect(givenUp).toEqual(Array<string>(6).fill('a'))
    expect(fill(places, 12, 'c')).toBe(4)
    expect(givenUp.slice(6).toSorted()).toEqual(['a', 'a', 'b', 'b'])
    expect(places.taken).toBe(12)
  })

  it('go from one key of an account to another in the same way', () => {
    const places = new SharedPlaces(8)
    fill(places, 8, 'account', 'key-1')
    expect(fill(places, 8, 'account', 'key-2')).toBe(4)
    expect(fill(places, 8, 'other')).toBe(4)
    expect(places.taken).toBe(8)
  })

  it('stay where they can not be given up', () => {
    const places = new SharedPlaces(4)
    const asked: number[] = []
    for (let at = 0; at < 4; at += 1) places.take(['a'], () => asked.push(at) > 0 && at === 2)
    expect(take(places, 'b')).not.toBeNull()
    expect(asked).toEqual([0, 1, 2])
    expect(take(places, 'c')).toBeNull()
  })

  it('are given again once they are left, each once', () => {
    const places = new SharedPlaces(1)
    const leave = take(places, 'a')
    expect(take(places, 'b')).toBeNull()
    leave?.()
    leave?.()
    expect(places.taken).toBe(0)
    expect(take(places, 'b')).not.toBeNull()
  })

  it('are found behind many that can’t be given up now', () => {
    const places = new SharedPlaces(151)
    for (let n = 0; n < 150; n += 1) places.take(['a'], () => false)
    take(places, 'a')
    expect(take(places, 'b')).toBeNull()
    expect(take(places, 'b')).not.toBeNull()
  })

  it('are none where there are to be none', () => {
    expect(take(new SharedPlaces(0), 'a')).toBeNull()
  })
})
