import { setTimeout as pause } from 'node:timers/promises'
import type { Release } from './budget.js'
import { TimeShares } from './time-shares.js'

function beBusyFor(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
}

describe('shares of time', () => {
  let shares: TimeShares
  /** The releases of the pieces that have started, by owner, in the order in which they started. */
  let started: { owner: string; release: Release }[]

  beforeEach(() => {
    shares = new TimeShares()
    started = []
  })

  /** Asks for pieces of work. Resolves when those that need not wait have started. */
  async function ask(owner: string, pieces = 1): Promise<void> {
    // Pieces of an earlier test may start later.
    const ownStarted = started
    for (let n = 0; n < pieces; n += 1) {
      void shares.take(owner).then((release) => ownStarted.push({ owner, release }))
    }
    await new Promise(setImmediate)
  }

  const ownersOf = () => started.map(({ owner }) => owner)

  async function untilStarted(pieces: number): Promise<void> {
    while (started.length < pieces) await pause(1)
  }

  it('are not limited for an owner that is alone, however busy it is', async () => {
    await ask('a')
    beBusyFor(200)
    await ask('a', 1_000)
    expect(started).toHaveLength(1_001)
  })

  it('are limited to a few pieces at once if there is another owner', async () => {
    await ask('b')
    await ask('a', 6)
    expect(ownersOf()).toEqual(['b', 'a', 'a', 'a', 'a'])
    await ask('b')
    expect(ownersOf()).toEqual(['b', 'a', 'a', 'a', 'a', 'b'])
    started[1]?.release()
    await untilStarted(7)
    expect(ownersOf().at(-1)).toBe('a')
  })

  it('are limited to more pieces if the caller asks for that', async () => {
    await ask('b')
    await ask('a', 4)
    await shares.take('a', 5)
    await ask('a')
    expect(ownersOf()).toEqual(['b', 'a', 'a', 'a', 'a'])
  })

  it('keep the order of an owner’s pieces', async () => {
    await ask('b')
    await ask('a', 5)
    const order: string[] = []
    void shares.take('a').then(() => order.push('first'))
    started[1]?.release()
    void shares.take('a').then(() => order.push('second'))
    while (order.length < 2) {
      for (const { release } of started) release()
      await pause(1)
    }
    expect(order).toEqual(['first', 'second'])
  })

  it('stop an owner that uses more than its share while another has work, and no other', async () => {
    await ask('a', 2)
    beBusyFor(100)
    await ask('b')
    started[0]?.release()
    await ask('a', 2)
    await ask('b')
    expect(ownersOf()).toEqual(['a', 'a', 'b', 'b'])
    for (const { release } of started) release()
    await untilStarted(5)
    for (const { release } of started) release()
    await untilStarted(6)
    expect(ownersOf()).toEqual(['a', 'a', 'b', 'b', 'a', 'a'])
  })

  it('are not used up by work that waits while another owner’s is done', async () => {
    await ask('a')
    for (let piece = 0; piece < 5; piece += 1) {
      const release = await shares.take('b')
      beBusyFor(40)
      release()
    }
    await ask('b')
    expect(ownersOf()).toEqual(['a'])
    await ask('a')
    expect(ownersOf()).toEqual(['a', 'a'])
  })
})
