import { SharedSlots } from './shared-slots.js'

type Owners = Parameters<SharedSlots['take']>[0]

describe('shared slots', () => {
  /** The owners that gave up slots, in order. */
  let givenUp: string[]

  beforeEach(() => {
    givenUp = []
  })

  function take(slots: SharedSlots, ...owners: Owners) {
    return slots.take(owners, () => givenUp.push(owners.join(' ')) > 0)
  }

  /** Returns how many of the tries got a slot. */
  function fill(slots: SharedSlots, tries: number, ...owners: Owners): number {
    return Array.from({ length: tries }, () => take(slots, ...owners)).filter((release) => release !== null)
      .length
  }

  it('may all be held by one owner', () => {
    const slots = new SharedSlots(10)
    expect(fill(slots, 11, 'a', 'key')).toBe(10)
    expect(givenUp).toEqual([])
  })

  it('are transferred from the owner with the most until all hold the same number', () => {
    const slots = new SharedSlots(12)
    fill(slots, 12, 'a')
    expect(fill(slots, 12, 'b')).toBe(6)
    expect(givenUp).toEqual(Array<string>(6).fill('a'))
    expect(fill(slots, 12, 'c')).toBe(4)
    expect(givenUp.slice(6).toSorted()).toEqual(['a', 'a', 'b', 'b'])
    expect(slots.taken).toBe(12)
  })

  it('are transferred between the keys of an account in the same way', () => {
    const slots = new SharedSlots(8)
    fill(slots, 8, 'account', 'key-1')
    expect(fill(slots, 8, 'account', 'key-2')).toBe(4)
    expect(fill(slots, 8, 'other')).toBe(4)
    expect(slots.taken).toBe(8)
  })

  it('stay with holders that can’t give them up', () => {
    const slots = new SharedSlots(4)
    const asked: number[] = []
    for (let at = 0; at < 4; at += 1) slots.take(['a'], () => asked.push(at) > 0 && at === 2)
    expect(take(slots, 'b')).not.toBeNull()
    expect(asked).toEqual([0, 1, 2])
    expect(take(slots, 'c')).toBeNull()
  })

  it('can be taken again after their release, which counts once', () => {
    const slots = new SharedSlots(1)
    const release = take(slots, 'a')
    expect(take(slots, 'b')).toBeNull()
    release?.()
    release?.()
    expect(slots.taken).toBe(0)
    expect(take(slots, 'b')).not.toBeNull()
  })

  it('are found after many that can’t be given up now', () => {
    const slots = new SharedSlots(151)
    for (let n = 0; n < 150; n += 1) slots.take(['a'], () => false)
    take(slots, 'a')
    expect(take(slots, 'b')).toBeNull()
    expect(take(slots, 'b')).not.toBeNull()
  })

  it('can’t be taken if there are none', () => {
    expect(take(new SharedSlots(0), 'a')).toBeNull()
  })
})
