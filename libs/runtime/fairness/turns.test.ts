import { Turns } from './turns.js'

const realNow = performance.now.bind(performance)
const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve))

describe('turns', () => {
  let started: string[]
  let turns: Turns
  /** The time passes only while pieces of work are busy, however busy the machine is. */
  let nowMs: number

  beforeEach(() => {
    started = []
    nowMs = 0
    performance.now = () => nowMs
    turns = new Turns()
  })
  afterEach(() => {
    performance.now = realNow
  })

  /** Runs pieces of work of an owner, each of which keeps the event loop busy. */
  function add(owner: string, pieces: number, busyMs = 0): void {
    for (let n = 0; n < pieces; n += 1) {
      turns.run(owner, () => {
        started.push(owner)
        nowMs += busyMs
      })
    }
  }

  it('start a few pieces at once, and the others later', async () => {
    add('a', 100)
    expect(started).toHaveLength(32)
    await nextTurn()
    expect(started).toHaveLength(64)
    while (started.length < 100) await nextTurn()
  })

  it('are taken by owners alternately, however many pieces each has', async () => {
    add('a', 200)
    add('b', 2)
    await nextTurn()
    expect(started.slice(32, 36)).toEqual(['a', 'b', 'a', 'b'])
    while (started.length < 202) await nextTurn()
  })

  it('start fewer pieces if each takes long, and more again later', async () => {
    add('a', 20, 5)
    expect(started).toHaveLength(1)
    for (let before = 1; started.length < 20; before = started.length) {
      await nextTurn()
      expect(started.length - before).toBeLessThanOrEqual(1)
    }
    await nextTurn()
    started = []
    add('a', 1_000)
    expect(started.length).toBeLessThan(10)
    while (started.length < 1_000) await nextTurn()
    await nextTurn()
    add('a', 32)
    expect(started.length).toBeGreaterThan(1_010)
  })
})
