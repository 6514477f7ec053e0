import { inboxIdIn } from '#libs/ports/read-model/read-model-harness.contract.js'
import { PlaintextMemory } from './opened-mail.js'

const [one, other] = [inboxIdIn(1), inboxIdIn(2)]
const page = (text: string) => ({ text })

describe('what was opened', () => {
  let nowMs: number
  let memory: PlaintextMemory<{ text: string }>

  beforeEach(() => {
    nowMs = 1
    memory = new PlaintextMemory(10_000, { now: () => nowMs })
  })
  afterEach(() => memory.close())

  it('is remembered by its inbox and name', () => {
    memory.keep(one, 'a', page('one'), 100)
    expect(memory.get(one, 'a')).toEqual(page('one'))
    expect(memory.get(one, 'b')).toBeNull()
    expect(memory.get(other, 'a')).toBeNull()
  })

  it('is forgotten with its inbox, and with no other', () => {
    memory.keep(one, 'a', page('one'), 100)
    memory.keep(one, 'b', page('one'), 100)
    memory.keep(other, 'a', page('other'), 100)
    memory.forget(one)
    expect([memory.get(one, 'a'), memory.get(one, 'b')]).toEqual([null, null])
    expect(memory.get(other, 'a')).toEqual(page('other'))
  })

  it('takes no more than its bytes: what was asked for longest ago goes first', () => {
    memory.keep(one, 'a', page('old'), 4_000)
    memory.keep(one, 'b', page('middle'), 4_000)
    expect(memory.get(one, 'a')).not.toBeNull()
    memory.keep(other, 'c', page('new'), 4_000)
    expect([memory.get(one, 'a'), memory.get(one, 'b'), memory.get(other, 'c')]).toEqual([
      page('old'),
      null,
      page('new'),
    ])
    memory.keep(other, 'd', page('too large'), 20_000)
    expect(memory.get(other, 'd')).toBeNull()
  })

  it('is gone after a minute, however often it was asked for or kept again', () => {
    memory.keep(one, 'a', page('one'), 100)
    for (let seconds = 0; seconds < 60; seconds += 10) {
      expect(memory.get(one, 'a')).not.toBeNull()
      memory.keep(one, 'a', page('again'), 100)
      nowMs += 10_000
    }
    nowMs += 1
    expect(memory.get(one, 'a')).toBeNull()
  })

  it('is nothing where there is no room', () => {
    const none = new PlaintextMemory<{ text: string }>(0)
    none.keep(one, 'a', page('one'), 1)
    expect(none.get(one, 'a')).toBeNull()
    none.close()
  })
})
