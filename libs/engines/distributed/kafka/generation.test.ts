import { Generation } from './group-member.js'

const member = (generation: number) => ({ memberId: 'a', generation })

describe('the generation of a group that a member is in', () => {
  let own: Generation
  beforeEach(() => {
    own = new Generation()
    own.assigned('a')
  })

  it('is known once a heartbeat was answered, and not from an assignment on to the next one', async () => {
    const first = own.known
    own.heard(member(4))
    expect(await first).toEqual(member(4))
    own.assigned('a')
    const second = own.known
    own.heard(member(4))
    own.heard(member(5))
    expect(await second).toEqual(member(5))
  })

  it.each([
    { told: 'one of each assignment', assignments: 2, generation: 6, isWhole: true },
    { told: 'more than assignments', assignments: 1, generation: 6, isWhole: false },
    { told: 'the same again', assignments: 0, generation: 4, isWhole: true },
  ])('$told: $isWhole that none was missed', ({ assignments, generation, isWhole }) => {
    own.heard(member(4))
    for (let n = 0; n < assignments; n += 1) own.assigned('a')
    expect(own.heard(member(generation))).toBe(isWhole)
  })

  it('may have missed one where it was assigned to twice before the first heartbeat', () => {
    own.assigned('a')
    expect(own.heard(member(9))).toBe(false)
  })

  it('begins anew under another name, and rejects who waited under the old one', async () => {
    const waiting = own.known
    own.assigned('b')
    await expect(waiting).rejects.toThrow('ended')
    const { known } = own
    expect(own.heard(member(4))).toBe(true)
    expect(own.heard({ memberId: 'b', generation: 9 })).toBe(true)
    expect(await known).toEqual({ memberId: 'b', generation: 9 })
  })
})
