import { SharedPlaces } from './shared-places.js'

/** How many places these owners are given, one after the other, until none is left for them. */
function fill(places: SharedPlaces, ...owners: [string, ...string[]]): number {
  let count = 0
  while (places.take(...owners) !== null) count += 1
  return count
}

describe('shared places', () => {
  it('leave half of them to others, and then part of the rest to each', () => {
    const places = new SharedPlaces(100)
    expect(fill(places, 'a')).toBe(50)
    expect(fill(places, 'b')).toBe(25)
    expect(fill(places, 'c')).toBe(13)
    expect(places.taken).toBe(88)
  })

  it('leave part of what an account may have to its other keys', () => {
    const places = new SharedPlaces(100)
    expect(fill(places, 'account', 'key-1')).toBe(40)
    expect(fill(places, 'account', 'key-2')).toBe(10)
    expect(fill(places, 'other')).toBe(25)
  })

  it('are given again once they are left, each once', () => {
    const places = new SharedPlaces(1)
    const leave = places.take('a')
    expect(places.take('b')).toBeNull()
    leave?.()
    leave?.()
    expect(places.taken).toBe(0)
    expect(places.take('b')).not.toBeNull()
  })

  it('are none where there are to be none', () => {
    expect(new SharedPlaces(0).take('a')).toBeNull()
  })
})
