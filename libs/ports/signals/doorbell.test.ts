import { Doorbell } from './signals.js'

const LONG_MS = 60_000

describe('a doorbell', () => {
  it('wakes a waiter', async () => {
    const bell = new Doorbell()
    const woken = bell.wait(LONG_MS)
    bell.ring()
    await woken
  })

  it('keeps one ring for a later waiter, however often it was rung', async () => {
    const bell = new Doorbell()
    bell.ring()
    bell.ring()
    await bell.wait(LONG_MS)
    let isWoken = false
    const next = bell.wait(LONG_MS).then(() => (isWoken = true))
    await new Promise(setImmediate)
    expect(isWoken).toBe(false)
    bell.ring()
    await next
  })

  it('stops waiting after the time limit, and can be waited for again', async () => {
    const bell = new Doorbell()
    await bell.wait(1)
    const woken = bell.wait(LONG_MS)
    bell.ring()
    await woken
  })
})
