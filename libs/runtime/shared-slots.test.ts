import { SharedSlots } from './fair-share.js'

type Owners = Parameters<SharedSlots['take']>[0]

describe('shared slots', () => {
  /** Whose slots were given up, in order. */
  let givenUp: string[]

  beforeEach(() => {
    givenUp = []
  })

  function take(slots: SharedSlots, ...owners: Owners) {
    return slots.take(owners, () => givenUp.push(owners.join(' ')) > 0)
  }

  /** How many of so many tries get a slot. */
  function fill(slots: SharedSlots, tries: number, ...owners: Owners): number {
    return Array.from({ length: tries }, () => take(slots, ...owners)).filter((leave) => leave !== null)
      .length
  }

  it('may all be one owner’s', () => {
    const slots = new SharedSlots(10)
    expect(fill(slots, 11, 'a', 'key')).toBe(10)
    expect(givenUp).toEqual([])
  })

  it('go from the owner with the most to others, until they hold the same', () => {
    const slots = new SharedSlots(12)
    fill(slots, 12, 'a')
    expect(fill(slots, 12, 'b')).toBe(6)
    expect(givenUp).toEqual(Array<string>(6).fill('a'))
    expect(fill(slots, 12, 'c')).toBe(4)
    expect(givenUp.slice(6).toSorted()).toEqual(['a', 'a', 'b', 'b'])
    expect(slots.taken).toBe(12)
  })

  it('go from one key of an account to another in the same way', () => {
    const slots = new SharedSlots(8)
    fill(slots, 8, 'account', 'key-1')
    expect(fill(slots, 8, 'account', 'key-2')).toBe(4)
    expect(fill(slots, 8, 'other')).toBe(4)
    expect(slots.taken).toBe(8)
  })

  it('stay where they can not be given up', () => {
    const slots = new SharedSlots(4)
    const asked: number[] = []
    for (let at = 0; at < 4; at += 1) slots.take(['a'], () => asked.push(at) > 0 && at === 2)
    expect(take(slots, 'b')).not.toBeNull()
    expect(asked).toEqual([0, 1, 2])
    expect(take(slots, 'c')).toBeNull()
  })

  it('are given again once they are left, each once', () => {
    const slots = new SharedSlots(1)
    const leave = take(slots, 'a')
    expect(take(slots, 'b')).toBeNull()
    leave?.()
    leave?.()
    expect(slots.taken).toBe(0)
    expect(take(slots, 'b')).not.toBeNull()
  })

  it('are found behind many that can’t be given up now', () => {
    const slots = new SharedSlots(151)
    for (let n = 0; n < 150; n += 1) slots.take(['a'], () => false)
    take(slots, 'a')
    expect(take(slots, 'b')).toBeNull()
    expect(take(slots, 'b')).not.toBeNull()
  })

  it('are none where there are to be none', () => {
    expect(take(new SharedSlots(0), 'a')).toBeNull()
  })
})
