import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { Circuits } from './circuits.js'

const id = idFromBytes('whk', Buffer.alloc(16, 1))
const other = idFromBytes('whk', Buffer.alloc(16, 2))

function failing(times: number, { circuits = new Circuits(), atMs = 0 } = {}): Circuits {
  for (let count = 0; count < times; count += 1) circuits.failed(id, atMs)
  return circuits
}

describe('the circuit of an endpoint', () => {
  it('stays closed for the first failures', () => {
    expect(failing(4).capacityOf(id, 10, 0)).toBe(10)
  })

  it('opens after five failures, and then allows one attempt', () => {
    const circuits = failing(5)
    expect([0, 4_999, 5_000].map((ms) => circuits.capacityOf(id, 10, ms))).toEqual([0, 0, 1])
    expect(circuits.capacityOf(other, 10, 0)).toBe(10)
  })

  it('ignores failures of attempts that were in progress when it opened', () => {
    const circuits = failing(20)
    expect([4_999, 5_000].map((ms) => circuits.capacityOf(id, 10, ms))).toEqual([0, 1])
  })

  it('opens for longer after each failure, up to five minutes', () => {
    const circuits = failing(5)
    const pauses: number[] = []
    for (let atMs = 5_000; pauses.length < 8;) {
      circuits.failed(id, atMs)
      let pause = 0
      while (circuits.capacityOf(id, 10, atMs + pause) === 0) pause += 1_000
      pauses.push(pause)
      atMs += pause
    }
    expect(pauses).toEqual([10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1_000))
  })

  it('closes after a success', () => {
    const circuits = failing(9)
    circuits.succeeded(id)
    expect(circuits.capacityOf(id, 10, 0)).toBe(10)
    expect(failing(4, { circuits }).capacityOf(id, 10, 0)).toBe(10)
  })
})
