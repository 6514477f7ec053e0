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

  it('is unknown after a new member id, and pending reads of the old one are rejected', async () => {
    const waiting = own.known
    own.assigned('b')
    await expect(waiting).rejects.toThrow('ended')
    const { known } = own
    own.heartbeat(member(4))
    own.heartbeat({ memberId: 'b', generation: 9 })
    expect(await known).toEqual({ memberId: 'b', generation: 9 })
  })
})
