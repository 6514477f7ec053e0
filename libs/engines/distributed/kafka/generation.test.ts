import { Generation } from './group-member.js'

const member = (generation: number) => ({ memberId: 'a', generation })

describe('the generation of a group', () => {
  let own: Generation
  beforeEach(() => {
    own = new Generation()
    own.assigned('a')
  })

  it('is known after a heartbeat, and unknown after an assignment until the next heartbeat', async () => {
    const first = own.known
    own.heartbeat(member(4))
    expect(await first).toEqual(member(4))
    own.assigned('a')
    const second = own.known
    own.heartbeat(member(4))
    own.heartbeat(member(5))
    expect(await second).toEqual(member(5))
  })

  it.each([
    { generations: 'one for each assignment', assignments: 2, generation: 6, isComplete: true },
    { generations: 'more than assignments', assignments: 1, generation: 6, isComplete: false },
    { generations: 'the same again', assignments: 0, generation: 4, isComplete: true },
  ])('$generations: none was missed is $isComplete', ({ assignments, generation, isComplete }) => {
    own.heartbeat(member(4))
    for (let n = 0; n < assignments; n += 1) own.assigned('a')
    expect(own.heartbeat(member(generation))).toBe(isComplete)
  })

  it('may have been missed if there were two assignments before the first heartbeat', () => {
    own.assigned('a')
    expect(own.heartbeat(member(9))).toBe(false)
  })

  it('is unknown after a new member id, and pending reads of the old one are rejected', async () => {
    const waiting = own.known
    own.assigned('b')
    await expect(waiting).rejects.toThrow('ended')
    const { known } = own
    expect(own.heartbeat(member(4))).toBe(true)
    expect(own.heartbeat({ memberId: 'b', generation: 9 })).toBe(true)
    expect(await known).toEqual({ memberId: 'b', generation: 9 })
  })
})
